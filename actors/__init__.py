"""The Ray and inline shells around the synchronous cores, and the seam between them."""
