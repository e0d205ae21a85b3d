"""Routes below `/api`, in two versions."""

from enum import Enum

import frappe
from frappe.api import v1, v2
from frappe.utils.response import build_response
from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, Submount
from werkzeug.wrappers import Request, Response


class ApiVersion(str, Enum):
	V1 = "v1"
	V2 = "v2"


API_URL_MAP = Map(
	[
		Submount("/api", v1.url_rules),
		Submount("/api/v1", [rule.empty() for rule in v1.url_rules]),
		Submount("/api/v2", v2.url_rules),
	],
	strict_slashes=False,
	merge_slashes=False,
)


def handle(request: Request) -> Response:
	try:
		endpoint, arguments = API_URL_MAP.bind_to_environ(request.environ).match()
	except NotFound:
		raise frappe.DoesNotExistError from None
	data = endpoint(**arguments)
	if isinstance(data, Response):
		return data
	if data is not None:
		frappe.local.response["data"] = data
	return build_response("json")


def get_api_version() -> ApiVersion | None:
	request = getattr(frappe.local, "request", None)
	if not request:
		return None
	return ApiVersion.V2 if request.path.startswith("/api/v2") else ApiVersion.V1
