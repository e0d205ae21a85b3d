"""Where the app can run: the embedded site, or an existing bench. For bin/test, demo and benchmark."""
