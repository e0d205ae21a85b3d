"""How fast is it, and compared with what: our engine beside its peers, on one machine, in one run."""
