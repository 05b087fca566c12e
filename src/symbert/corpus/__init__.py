"""Web text to rows of token ids: sources, filters, WordPiece, shards."""
