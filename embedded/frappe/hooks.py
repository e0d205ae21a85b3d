"""The framework's own hooks: none."""

app_name = "frappe"
