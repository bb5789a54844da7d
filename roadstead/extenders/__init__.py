"""HTTP extenders, called as kube-scheduler 1.34 calls them."""
