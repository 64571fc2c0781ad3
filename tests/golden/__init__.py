"""Golden folders: what the code decides, number by number, recorded and compared between two versions."""
