"""Facts about IR: how values change from lane to lane, which memory accesses may meet, bounds at run time."""
