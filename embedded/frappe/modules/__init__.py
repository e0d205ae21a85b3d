"""The files of an app's modules."""

from frappe.modules.utils import get_module_app, get_module_path, load_doctype_module, reload_doc, scrub

__all__ = ["get_module_app", "get_module_path", "load_doctype_module", "reload_doc", "scrub"]
