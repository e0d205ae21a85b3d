"""Routes below `/api`: documents and whitelisted methods, in two versions."""

import json
import sys

import frappe
from frappe import _, client
from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response


def handle(request: Request) -> Response:
	try:
		endpoint, arguments = ROUTES.bind_to_environ(request.environ).match()
	except NotFound:
		raise frappe.DoesNotExistError from None
	if "run_method" in frappe.local.form_dict:
		raise frappe.NotOfferedError("The parameter run_method")
	data = endpoint(**arguments)
	if isinstance(data, Response):
		return data
	if data is not None:
		frappe.local.response["message" if endpoint is call_method and not is_v2() else "data"] = data
	return build_response()


def call_method(method: str):
	if method == "ping":
		return "pong"
	path = frappe.get_hooks("override_whitelisted_methods", {}).get(method, [method])[-1]
	try:
		found = frappe.get_attr(path)
	except Exception as error:
		if "." not in path or path.startswith("frappe."):
			raise frappe.NotOfferedError(f"The method {path}") from error
		frappe.throw(_("There is no method {0}: {1}").format(path, error))
	frappe.is_whitelisted(found)
	verb = frappe.local.request.method
	if verb not in frappe.allowed_http_methods_for_whitelisted_func[found]:
		frappe.throw(_("This cannot be called with {0}").format(verb), frappe.PermissionError)
	return frappe.call(found, **frappe.local.form_dict)


def list_documents(doctype: str) -> list[dict]:
	sent = frappe.local.form_dict
	size = sent.pop("limit", None) or sent.pop("limit_page_length", 20)
	return client.get_list(**sent.update(doctype=doctype, limit_page_length=size))


def create(doctype: str):
	return frappe.get_doc({**frappe.local.form_dict, "doctype": doctype}).insert()


def update(doctype: str, name: str):
	return frappe.get_doc(doctype, name, for_update=True).update(frappe.local.form_dict).save()


def delete(doctype: str, name: str) -> str:
	client.delete(doctype, name)
	frappe.local.response["http_status_code"] = 202
	return "ok"


def build_response() -> Response:
	answer, messages = frappe.local.response, frappe.local.message_log
	if answer.get("type", "json") != "json":
		raise frappe.NotOfferedError(f"A response of type {answer.type}")
	if not answer.get("docs"):
		answer.pop("docs", None)
	if messages:
		texts = json.dumps([json.dumps(entry) for entry in messages])
		answer |= {"messages": messages} if is_v2() else {"_server_messages": texts}
	if frappe.local.flags.error_message and not is_v2():
		answer["_error_message"] = frappe.local.flags.error_message
	status = answer.pop("http_status_code", None) or 200
	body = json.dumps(answer, default=frappe.json_handler, separators=(",", ":"))
	return Response(body, status=status, mimetype="application/json")


def report_error(status_code: int) -> Response:
	"""The body for the exception being handled, in the form of the API version that was called."""
	kind, error, _trace = sys.exc_info()
	shown = status_code != 404 and frappe.db.get_single_value("System Settings", "allow_error_traceback")
	trace, answer = frappe.get_traceback() if shown else "", frappe._dict(http_status_code=status_code)
	if is_v2():
		answer.errors = [{"type": kind.__name__, "message": str(error), "exception": trace}]
	else:
		answer.exc_type = kind.__name__
		if trace:
			answer.update(exception=trace.splitlines()[-1], exc=json.dumps([trace]))
	frappe.local.response = answer
	return build_response()


def is_v2() -> bool:
	return frappe.local.request.path.startswith("/api/v2/")


ROUTES = Map(strict_slashes=False, merge_slashes=False)
for version, documents in {"": "resource", "/v1": "resource", "/v2": "document"}.items():
	many, one = f"/api{version}/{documents}/<doctype>", f"/api{version}/{documents}/<doctype>/<path:name>"
	ROUTES.add(Rule(f"/api{version}/method/<method>", endpoint=call_method))
	ROUTES.add(Rule(many, methods=["GET"], endpoint=list_documents))
	ROUTES.add(Rule(one, methods=["GET"], endpoint=client.readable))
	if version != "/v2":
		ROUTES.add(Rule(many, methods=["POST"], endpoint=create))
		ROUTES.add(Rule(one, methods=["PUT"], endpoint=update))
		ROUTES.add(Rule(one, methods=["DELETE"], endpoint=delete))
