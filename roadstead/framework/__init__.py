"""Extension points over tables, profiles, and the evaluation of a pod class with its plugins."""
