import frappe


@frappe.whitelist()
def double(number: int) -> int:
	return number * 2


@frappe.whitelist(methods=["POST"])
def add(title: str) -> str:
	return frappe.get_doc({"doctype": "Note Item", "title": title}).insert().name


@frappe.whitelist()
def add_and_fail(title: str) -> None:
	frappe.get_doc({"doctype": "Note Item", "title": title}).insert()
	frappe.throw("no such luck")


@frappe.whitelist()
def add_by_get(title: str) -> str:
	return frappe.get_doc({"doctype": "Note Item", "title": title}).insert().name


@frappe.whitelist(allow_guest=True)
def for_all() -> str:
	return frappe.session.user


def hidden() -> str:
	return "secret"
