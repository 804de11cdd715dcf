"""`caraway management`: start the management service, or prepare it."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from caraway.cli import server_options
from caraway.cli.server_options import address
from caraway.cli.variables import setting
from caraway_core.loading import registry
from caraway_core.settings import ManagementOptions

DEFAULT_HTTP = "127.0.0.1:8070"
_DATA_DIR = Path(".caraway/management")

Database = Annotated[
    str | None,
    setting(
        "--database URL",
        "CARAWAY_MANAGEMENT_DATABASE",
        "Database, such as postgresql://user@host/db; default: a file in the data directory.",
    ),
]
KeyFile = Annotated[
    Path | None,
    setting(
        "--key-file FILE",
        "CARAWAY_MANAGEMENT_KEY_FILE",
        "Keys that seal secrets, one ID:KEY per line; default: a file in the data directory.",
    ),
]
PublicUrl = Annotated[
    str | None,
    setting(
        "--public-url URL",
        "CARAWAY_MANAGEMENT_PUBLIC_URL",
        "How users reach the service, such as https://caraway.example; the issuer of its "
        "tokens, equal for all instances. Default: the address that it listens on.",
    ),
]
TrustedProxies = Annotated[
    str,
    setting(
        "--trusted-proxies CIDR,...",
        "CARAWAY_MANAGEMENT_TRUSTED_PROXIES",
        "Networks of proxies whose X-Forwarded-For names the client, such as 10.0.0.0/8. "
        "Default: none; the sender of a connection is the client.",
    ),
]
OidcIssuer = Annotated[
    str | None,
    setting(
        "--oidc-issuer URL",
        "CARAWAY_MANAGEMENT_OIDC_ISSUER",
        "OIDC issuer that users may sign in with.",
    ),
]
OidcClientId = Annotated[
    str,
    setting(
        "--oidc-client-id ID",
        "CARAWAY_MANAGEMENT_OIDC_CLIENT_ID",
        "What the issuer calls this service. Its secret, if it has one, is the environment "
        "variable CARAWAY_MANAGEMENT_OIDC_CLIENT_SECRET.",
    ),
]
OidcAddsUsers = Annotated[
    bool,
    setting(
        "--oidc-adds-users/--oidc-known-users",
        "CARAWAY_MANAGEMENT_OIDC_ADDS_USERS",
        "Add users of the issuer who are unknown here, or refuse them.",
    ),
]
_OIDC_SECRET = "CARAWAY_MANAGEMENT_OIDC_CLIENT_SECRET"
Platform = Annotated[
    Path | None,
    setting(
        "--platform FILE",
        "CARAWAY_MANAGEMENT_PLATFORM",
        "Regions, clusters, images and places of git that projects may use, as YAML.",
    ),
]


Deployer = Annotated[
    Literal["local", "kubernetes", "none"],
    setting(
        "--deployer <local|kubernetes|none>",
        "CARAWAY_MANAGEMENT_DEPLOYER",
        "Where projects run: as processes of this machine, in Kubernetes, or nowhere.",
    ),
]
Installation = Annotated[
    str,
    setting(
        "--installation NAME",
        "CARAWAY_MANAGEMENT_INSTALLATION",
        "Beginning of the names of namespaces in Kubernetes, one for each service.",
    ),
]
AllowLocalFiles = Annotated[
    bool,
    setting(
        "--allow-local-files",
        "CARAWAY_MANAGEMENT_ALLOW_LOCAL_FILES",
        "Let projects read files and the environment of this machine.",
    ),
]


def build() -> typer.Typer:
    """Build the command and its subcommands."""
    app = typer.Typer(
        name="management",
        help="Serve organizations, projects and deployments.",
        rich_markup_mode=None,
        invoke_without_command=True,
    )
    app.callback()(serve)
    app.command("init")(init)
    app.command("rotate-keys")(rotate_keys)
    app.command("migrate")(migrate)
    app.command("strays")(strays)
    return app


def serve(
    context: typer.Context,
    http: server_options.Http = DEFAULT_HTTP,
    data_dir: server_options.DataDir = _DATA_DIR,
    database: Database = None,
    key_file: KeyFile = None,
    platform: Platform = None,
    deployer: Deployer = "local",
    installation: Installation = "caraway",
    allow_local_files: AllowLocalFiles = False,
    public_url: PublicUrl = None,
    trusted_proxies: TrustedProxies = "",
    oidc_issuer: OidcIssuer = None,
    oidc_client_id: OidcClientId = "",
    oidc_adds_users: OidcAddsUsers = False,
    log_format: server_options.LogFormatOption = "text",
    ready_fd: server_options.ReadyFd = None,
) -> None:
    """Serve organizations, projects and deployments until Ctrl-C."""
    if context.invoked_subcommand:
        return
    options = ManagementOptions(
        data_dir=data_dir,
        http=address(http, "--http"),
        database=database,
        key_file=key_file,
        platform=platform,
        deployer=deployer,
        installation=installation,
        allow_local_files=allow_local_files,
        public_url=public_url,
        trusted_proxies=tuple(filter(None, trusted_proxies.split(","))),
        oidc_issuer=oidc_issuer,
        oidc_client_id=oidc_client_id,
        oidc_client_secret=os.environ.get(_OIDC_SECRET),
        oidc_adds_users=oidc_adds_users,
        log_format=log_format,
        ready_fd=ready_fd,
    )
    raise typer.Exit(registry.COMMANDS.build("management", options))


def init(
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="Name of the organization.")],
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Name of its owner.")
    ] = "owner",
    data_dir: server_options.DataDir = _DATA_DIR,
    database: Database = None,
    key_file: KeyFile = None,
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Make the first organization and its owner, and print the owner's token as JSON."""
    options = ManagementOptions(
        data_dir=data_dir, database=database, key_file=key_file, log_format=log_format
    )
    raise typer.Exit(registry.COMMANDS.build("management init", options, org, user))


def rotate_keys(
    data_dir: server_options.DataDir = _DATA_DIR,
    database: Database = None,
    key_file: KeyFile = None,
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Seal all data keys with a new key, and print its id as JSON. Services keep running.

    With --key-file or CARAWAY_MANAGEMENT_KEYS, add a key at the end first, at every instance.
    """
    options = ManagementOptions(
        data_dir=data_dir, database=database, key_file=key_file, log_format=log_format
    )
    raise typer.Exit(registry.COMMANDS.build("management rotate-keys", options))


def migrate(
    data_dir: server_options.DataDir = _DATA_DIR,
    database: Database = None,
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Bring the database to the revision of this release, and print it as JSON.

    A service does the same when it starts. Needs no keys.
    """
    options = ManagementOptions(data_dir=data_dir, database=database, log_format=log_format)
    raise typer.Exit(registry.COMMANDS.build("management migrate", options))


def strays(
    remove: Annotated[bool, typer.Option("--remove", help="Remove them and their data.")] = False,
    data_dir: server_options.DataDir = _DATA_DIR,
    database: Database = None,
    key_file: KeyFile = None,
    deployer: Deployer = "local",
    installation: Installation = "caraway",
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Print the runtimes of projects that the database does not know, as JSON.

    There are such after the restore of an earlier database. With the local deployer, stop the
    service first; it removes them after its next start.
    """
    options = ManagementOptions(
        data_dir=data_dir, database=database, key_file=key_file, deployer=deployer,
        installation=installation, log_format=log_format,
    )  # fmt: skip
    raise typer.Exit(registry.COMMANDS.build("management strays", options, removes=remove))
