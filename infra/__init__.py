"""What runs this project somewhere: the local stack, images, charts and dashboards."""
