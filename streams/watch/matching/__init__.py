"""What lines mean: packs, the patterns in them, and the engines that look for those in blocks of lines."""
