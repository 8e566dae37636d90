"""What the small real trainer is made of. Standard library only: it runs on nodes that have nothing but Python."""
