"""The pages of `report` behind the service's address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from kernelexp.api.service.answers import Door, RefusedRequest
from kernelexp.model.errors import KernelexpError
from kernelexp.report.site.server import HEADERS, Pages

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class ReportPages:
    """Report pages of the project that the service was started in."""

    def __init__(self, project: Path, door: Door) -> None:
        self._door = door
        self._pages: Pages | None = None
        try:
            self._pages = Pages(project)
        except KernelexpError as error:
            self._why = str(error)

    async def page(self, request: Request) -> Response:
        """Raises RefusedRequest: 404 where there is no project, or no such page in it."""
        from starlette.responses import Response

        self._door.client(request)
        if self._pages is None:
            raise RefusedRequest(404, f"there are no pages: {self._why}")
        path = request.path_params.get("path", "")
        status, content, kind = await asyncio.to_thread(self._pages.answer, path)
        return Response(content, status, {**HEADERS, "Content-Type": kind})
