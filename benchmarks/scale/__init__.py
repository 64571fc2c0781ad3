"""What engines cost: each row times whole commands, or scripts of this folder, in processes of their own."""
