"""Implements `caraway management`."""

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from pathlib import Path

import uvloop

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.process import logs, ready_pipe
from caraway_core.settings import ManagementOptions
from caraway_management import accounts, composition, platform_file
from caraway_management.api import app
from caraway_management.credentials import settings
from caraway_management.credentials.oidc import Oidc
from caraway_management.credentials.settings import CredentialSettings, OidcSettings
from caraway_management.deployments import strays as finding
from caraway_management.domain import proxies
from caraway_management.domain.platform import Platform
from caraway_management.domain.refusals import RefusedError
from caraway_management.notices import settings as notice_settings
from caraway_management.sealing import keys
from caraway_management.sealing.keys import KeyFile, KeySource
from caraway_management.sealing.sealer import Sealer
from caraway_management.services import Services, utc_now
from caraway_management.store import database, fitting, migrations
from caraway_management.store.database import Database
from caraway_serving import listeners
from caraway_serving.listeners import HttpServer

logger = logging.getLogger(__name__)
_OWNER = "owner"


def run(options: ManagementOptions) -> int:
    """Serve the management API until SIGTERM or SIGINT. Returns the exit code.

    Raises:
        CarawayError: it cannot start.
    """
    logs.configure(options.log_format)
    return _run(_serve(options))


def initialize(options: ManagementOptions, org: str, username: str = _OWNER) -> int:
    """Make the first organization and its owner; print the token of the owner.

    Raises:
        CarawayError: the organization exists, or the database cannot be used.
    """
    logs.configure(options.log_format)
    return _run(_initialize(options, org, username))


def rotate_keys(options: ManagementOptions) -> int:
    """Seal the data keys with a new key; print its id. Running instances need no restart.

    Raises:
        CarawayError: a key is missing, or the key file or the database cannot be used.
    """
    logs.configure(options.log_format)
    return _run(_rotate_keys(options))


def strays(options: ManagementOptions, *, removes: bool) -> int:
    """Print the runtimes that are of no project of the database, and remove them if wanted.

    Raises:
        CarawayError: the runtimes or the database cannot be used.
    """
    logs.configure(options.log_format)
    return _run(_strays(options, removes))


def migrate(options: ManagementOptions) -> int:
    """Bring the database to the revision of this release. Needs no keys.

    Raises:
        CarawayError: the database cannot be used, or is of a newer release.
    """
    logs.configure(options.log_format)
    return _run(_migrate(options))


async def _serve(options: ManagementOptions) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with _opened(options) as opened, composition.deployer(options, opened) as deployer:
        services = dataclasses.replace(opened, deployer=deployer)
        listener = listeners.bind(options.http, "--http")
        address = listeners.bound_address(listener)
        application = app.build(_with_credentials(services, options, f"http://{address}"))
        server = HttpServer(application)
        serving = tasks.begin(server.serve(sockets=[listener]))
        await server.is_up.wait()
        async with composition.working(services):
            print(f"Management API: http://{address}", file=sys.stderr, flush=True)
            ready_pipe.write(options.ready_fd, {"http": address})
            await stopping.wait()
            server.drain()
            server.stop()
            await serving
            await application.aclose()
    return 0


async def _initialize(options: ManagementOptions, org: str, username: str) -> int:
    async with _opened(options) as services, services.database.change() as session:
        now = services.now()
        try:
            owner = await accounts.add_user(session, now, username, is_administrator=True)
            organization = await accounts.add_organization(session, now, org, owner, "enterprise")
        except RefusedError as exc:
            raise CarawayError(f"{exc.message}; this installation has been initialized") from exc
        token = await accounts.add_token(session, now, owner, "first token")
    print(json.dumps({"token": token.value, "org_id": organization.id}))
    return 0


async def _rotate_keys(options: ManagementOptions) -> int:
    async with _opened(options) as services, services.database.change() as session:
        source = _key_source(options)
        # The owner of a named key file changes it; its last key is the new one.
        if options.key_file is None and isinstance(source, KeyFile):
            await asyncio.to_thread(source.add)
        key_id = await services.sealer.rotate(session)
    print(json.dumps({"key_encryption_key_id": key_id}))
    return 0


async def _strays(options: ManagementOptions, removes: bool) -> int:
    async with _opened(options) as services, composition.deployer(options, services) as deployer:
        there = await deployer.project_ids()
        async with services.database.read() as session:
            found = await finding.find(session, there)
        for project_id in found if removes else ():
            await deployer.remove(project_id)
    print(json.dumps({"removed" if removes else "strays": found}))
    return 0


async def _migrate(options: ManagementOptions) -> int:
    async with _migrated(options) as opened:
        print(json.dumps({"revision": await migrations.present(opened)}))
    return 0


@contextlib.asynccontextmanager
async def _opened(options: ManagementOptions) -> AsyncIterator[Services]:
    """Open the database of the options, with the tables of this release and their keys."""
    async with _migrated(options) as opened:
        services = Services(
            opened,
            Sealer(_key_source(options), utc_now),
            notices=notice_settings.read(os.environ),
            platform=platform_file.read(options.platform) if options.platform else Platform(),
        )
        async with opened.change() as session:
            await accounts.add_plans(session, services.now())
            await services.sealer.check(session)
        yield services


@contextlib.asynccontextmanager
async def _migrated(options: ManagementOptions) -> AsyncIterator[Database]:
    """Open the database of the options, with the tables of this release."""
    if options.database:
        url = database.parse_url(options.database)
    else:
        _make_private(options.data_dir)
        url = database.embedded(options.data_dir)
    opened = Database(url)
    try:
        await migrations.upgrade(opened)
        if problem := await fitting.problem(opened):
            raise CarawayError(problem)
        yield opened
    finally:
        await opened.close()


def _key_source(options: ManagementOptions) -> KeySource:
    folder = None if options.database else options.data_dir
    return keys.source_of(folder, options.key_file, os.environ)


def _with_credentials(services: Services, options: ManagementOptions, address: str) -> Services:
    """Return the services with the public URL, the proxies and the OIDC issuer of the options.

    Raises:
        CarawayError: one of them cannot be used.
    """
    public = settings.read_public_url(options.public_url or address)
    oidc = None
    if options.oidc_issuer:
        if not options.oidc_client_id:
            raise CarawayError("--oidc-issuer needs --oidc-client-id")
        oidc = Oidc(
            OidcSettings(
                options.oidc_issuer,
                options.oidc_client_id,
                options.oidc_client_secret,
                options.oidc_adds_users,
            )
        )
    trusted = proxies.read_networks(options.trusted_proxies)
    return replace(
        services, credentials=CredentialSettings(public), oidc=oidc, trusted_proxies=trusted
    )


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise CarawayError(
            f"cannot use the data directory '{folder}': {exc.strerror}; choose another one with "
            "--data-dir DIR"
        ) from exc
    # The driver of the database makes files; no other user may read them.
    os.umask(0o077)


def _run(work: Coroutine[object, object, int]) -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
