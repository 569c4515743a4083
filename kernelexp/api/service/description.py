"""OpenAPI, from the types that are decoded and encoded."""

from __future__ import annotations

from typing import Any

import msgspec

from kernelexp import __version__
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import Ticket

ROUTES = {
    "/evaluations": {"post": ("Evaluate a solution.", True)},
    "/evaluations/{id}": {
        "get": ("Its state, and the assessment once it is done.", False),
        "delete": ("Cancel it.", False),
    },
    "/evaluations/{id}/events": {"get": ("What happens to it, as server-sent events.", False)},
    "/health": {"get": ("Whether the service answers.", False)},
    "/metrics": {"get": ("Figures for Prometheus.", False)},
    "/report/": {"get": ("The project as web pages.", False)},
}


def describe() -> dict[str, Any]:
    (job, ticket), parts = msgspec.json.schema_components(
        [jobs.QueuedJob, Ticket], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for path, verbs in ROUTES.items():
        for verb, (summary, body) in verbs.items():
            operation: dict[str, Any] = {"summary": summary, "responses": {"200": _ok(ticket)}}
            if not path.startswith("/evaluations") or path.endswith("/events"):
                operation["responses"] = {"200": {"description": "OK"}}
            if body:
                operation["requestBody"] = {"content": {"application/json": {"schema": job}}}
                operation["responses"]["202"] = _ok(ticket)
            if "{id}" in path:
                operation["parameters"] = [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ]
            paths.setdefault(path, {})[verb] = operation
    info = {"title": "kernelexp", "version": __version__}
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": dict(parts)},
    }


def _ok(schema: Any) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"schema": schema}}}
