"""HTTP extenders: schedulers' helpers outside of the process, as kube-scheduler 1.34 calls them."""
