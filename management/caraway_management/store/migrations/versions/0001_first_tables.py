"""The first tables."""

import sqlalchemy as sa
from alembic import op

from caraway_management.store import types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "activity",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=True),
        sa.Column("project_id", types.Number, nullable=True),
        sa.Column("at", types.Moment(), nullable=False),
        sa.Column("actor_id", types.Number, nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("credential_kind", sa.String(), nullable=False),
        sa.Column("credential_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("resource_kind", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("resource_name", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("status", types.Number, nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activity")),
    )
    op.create_index(op.f("ix_activity_org_id_at"), "activity", ["org_id", "at"], unique=False)
    op.create_index(op.f("ix_activity_org_id_id"), "activity", ["org_id", "id"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("count", types.Number, nullable=False),
        sa.Column("since", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempts")),
    )
    op.create_index(op.f("ix_attempts_since"), "attempts", ["since"], unique=False)
    op.create_table(
        "authorization_codes",
        sa.Column("code_hash", sa.String(), nullable=False),
        sa.Column("client_id", sa.String(), nullable=False),
        sa.Column("user_id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=True),
        sa.Column("redirect_uri", sa.String(), nullable=False),
        sa.Column("challenge", sa.String(), nullable=False),
        sa.Column("scopes", types.Json(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=False),
        sa.Column("token_id", types.Number, nullable=True),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_authorization_codes")),
    )
    op.create_index(
        op.f("ix_authorization_codes_expires_at"),
        "authorization_codes",
        ["expires_at"],
        unique=False,
    )
    op.create_table(
        "data_keys",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("key_encryption_key_id", sa.String(), nullable=False),
        sa.Column("wrapped", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("retired_at", types.Moment(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_keys")),
    )
    op.create_table(
        "device_sign_ins",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("code_hash", sa.String(), nullable=False),
        sa.Column("user_code", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("user_id", types.Number, nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_sign_ins")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_device_sign_ins_code_hash")),
        sa.UniqueConstraint("user_code", name=op.f("uq_device_sign_ins_user_code")),
    )
    op.create_table(
        "idempotent_answers",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("status", types.Number, nullable=False),
        sa.Column("sealed_body", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name=op.f("pk_idempotent_answers")),
    )
    op.create_index(
        op.f("ix_idempotent_answers_created_at"), "idempotent_answers", ["created_at"], unique=False
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("until", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "metric_samples",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("at", types.Moment(), nullable=False),
        sa.Column("values", types.Json(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric_samples")),
    )
    op.create_index(
        op.f("ix_metric_samples_project_id_at"),
        "metric_samples",
        ["project_id", "at"],
        unique=False,
    )
    op.create_table(
        "oauth_clients",
        sa.Column("client_id", sa.String(), nullable=False),
        sa.Column("org_id", types.Number, nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("scopes", types.Json(), nullable=False),
        sa.Column("secret_hash", sa.String(), nullable=True),
        sa.Column("redirect_uris", types.Json(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("created_by", types.Number, nullable=True),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=True),
        sa.Column("last_used_at", types.Moment(), nullable=True),
        sa.Column("deleted_at", types.Moment(), nullable=True),
        sa.PrimaryKeyConstraint("client_id", name=op.f("pk_oauth_clients")),
    )
    op.create_index(op.f("ix_oauth_clients_org_id"), "oauth_clients", ["org_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("payload", types.Json(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("next_at", types.Moment(), nullable=False),
        sa.Column("attempts", types.Number, nullable=False),
        sa.Column("failures", types.Number, nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("owned_until", types.Moment(), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_next_at"), "outbox", ["next_at"], unique=False)
    op.create_index(op.f("ix_outbox_subject_id"), "outbox", ["subject", "id"], unique=False)
    op.create_table(
        "plans",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("limits", types.Json(), nullable=False),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_plans")),
    )
    op.create_table(
        "sign_ins",
        sa.Column("state_hash", sa.String(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=False),
        sa.Column("verifier", sa.String(), nullable=False),
        sa.Column("return_to", sa.String(), nullable=False),
        sa.Column("user_id", types.Number, nullable=True),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_sign_ins")),
    )
    op.create_index(op.f("ix_sign_ins_expires_at"), "sign_ins", ["expires_at"], unique=False)
    op.create_table(
        "signing_keys",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("sealed_private_key", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("retired_at", types.Moment(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_signing_keys")),
    )
    op.create_table(
        "users",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("username_key", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=True),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("is_administrator", sa.Boolean(), nullable=False),
        sa.Column("home_org_id", types.Number, nullable=True),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("deleted_at", types.Moment(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("username_key", name=op.f("uq_users_username_key")),
    )
    op.create_table(
        "identities",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("user_id", types.Number, nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_identities_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identities")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_identities_issuer_subject")),
    )
    op.create_index(op.f("ix_identities_user_id"), "identities", ["user_id"], unique=False)
    op.create_table(
        "orgs",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("plan", sa.String(), nullable=False),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("deleted_at", types.Moment(), nullable=True),
        sa.ForeignKeyConstraint(["plan"], ["plans.name"], name=op.f("fk_orgs_plan")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orgs")),
        sa.UniqueConstraint("name_key", name=op.f("uq_orgs_name_key")),
    )
    op.create_table(
        "sessions",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("user_id", types.Number, nullable=False),
        sa.Column("value_hash", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("user_agent", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("last_used_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sessions_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("value_hash", name=op.f("uq_sessions_value_hash")),
    )
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("user_id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=True),
        sa.Column("client_id", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("hint", sa.String(), nullable=False),
        sa.Column("value_hash", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=True),
        sa.Column("scopes", types.Json(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=True),
        sa.Column("last_used_at", types.Moment(), nullable=True),
        sa.Column("revoked_at", types.Moment(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_tokens_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("value_hash", name=op.f("uq_tokens_value_hash")),
    )
    op.create_index(op.f("ix_tokens_previous_hash"), "tokens", ["previous_hash"], unique=False)
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("value_hash", sa.String(), nullable=False),
        sa.Column("invited_by", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("expires_at", types.Moment(), nullable=False),
        sa.Column("accepted_at", types.Moment(), nullable=True),
        sa.Column("revoked_at", types.Moment(), nullable=True),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_invitations_org_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("value_hash", name=op.f("uq_invitations_value_hash")),
    )
    op.create_index(op.f("ix_invitations_org_id"), "invitations", ["org_id"], unique=False)
    op.create_table(
        "members",
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("user_id", types.Number, nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_members_org_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_members_user_id")),
        sa.PrimaryKeyConstraint("org_id", "user_id", name=op.f("pk_members")),
    )
    op.create_index(op.f("ix_members_user_id"), "members", ["user_id"], unique=False)
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("cluster_name", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("template", sa.String(), nullable=False),
        sa.Column("spec", types.Json(), nullable=False),
        sa.Column("targets", types.Json(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("since", types.Moment(), nullable=True),
        sa.Column("calm_since", types.Moment(), nullable=True),
        sa.Column("last_fired_at", types.Moment(), nullable=True),
        sa.Column("last_resolved_at", types.Moment(), nullable=True),
        sa.Column("evaluation_unavailable_reason", sa.String(), nullable=True),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_monitors_org_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_monitors")),
        sa.UniqueConstraint(
            "org_id",
            "project_id",
            "cluster_name",
            "name_key",
            name=op.f("uq_monitors_org_id_project_id_cluster_name_name_key"),
        ),
    )
    op.create_index(op.f("ix_monitors_project_id"), "monitors", ["project_id"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("region", sa.String(), nullable=True),
        sa.Column("cluster_name", sa.String(), nullable=True),
        sa.Column("production_branch", sa.String(), nullable=True),
        sa.Column("tags", types.Json(), nullable=False),
        sa.Column("manifest", sa.String(), nullable=True),
        sa.Column("config", types.Json(), nullable=False),
        sa.Column("repository", types.Json(), nullable=True),
        sa.Column("forked_from", types.Number, nullable=True),
        sa.Column("deployed_id", types.Number, nullable=True),
        sa.Column("endpoint", sa.String(), nullable=True),
        sa.Column("flight_endpoint", sa.String(), nullable=True),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.Column("paused_at", types.Moment(), nullable=True),
        sa.Column("deleted_at", types.Moment(), nullable=True),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_projects_org_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("org_id", "name_key", name=op.f("uq_projects_org_id_name_key")),
    )
    op.create_index(op.f("ix_projects_org_id_id"), "projects", ["org_id", "id"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sealed", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_secrets_org_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_secrets")),
        sa.UniqueConstraint(
            "org_id", "project_id", "name", name=op.f("uq_secrets_org_id_project_id_name")
        ),
    )
    op.create_table(
        "api_keys",
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("number", types.Number, nullable=False),
        sa.Column("value_hash", sa.String(), nullable=False),
        sa.Column("sealed", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_api_keys_project_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("value_hash", name=op.f("uq_api_keys_value_hash")),
    )
    op.create_table(
        "deployments",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("manifest", sa.String(), nullable=False),
        sa.Column("config", types.Json(), nullable=False),
        sa.Column("branch", sa.String(), nullable=True),
        sa.Column("commit_sha", sa.String(), nullable=True),
        sa.Column("commit_message", sa.String(), nullable=True),
        sa.Column("rollback_of", types.Number, nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("creation_source", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.Column("started_at", types.Moment(), nullable=True),
        sa.Column("finished_at", types.Moment(), nullable=True),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_deployments_org_id")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_deployments_project_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployments")),
    )
    op.create_index(
        op.f("ix_deployments_project_id_id"), "deployments", ["project_id", "id"], unique=False
    )
    op.create_index(op.f("ix_deployments_status_id"), "deployments", ["status", "id"], unique=False)
    op.create_table(
        "reactions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", types.Number, nullable=False),
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("spec", types.Json(), nullable=False),
        sa.Column("targets", types.Json(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("cursor", sa.String(), nullable=True),
        sa.Column("last_fired_at", types.Moment(), nullable=True),
        sa.Column("revision", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.Column("updated_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name=op.f("fk_reactions_org_id")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_reactions_project_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reactions")),
        sa.UniqueConstraint(
            "project_id", "name_key", name=op.f("uq_reactions_project_id_name_key")
        ),
    )
    op.create_table(
        "secret_links",
        sa.Column("project_id", types.Number, nullable=False),
        sa.Column("secret_id", types.Number, nullable=False),
        sa.Column("created_at", types.Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_secret_links_project_id")
        ),
        sa.ForeignKeyConstraint(
            ["secret_id"], ["secrets.id"], name=op.f("fk_secret_links_secret_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "secret_id", name=op.f("pk_secret_links")),
    )
    op.create_index(op.f("ix_secret_links_secret_id"), "secret_links", ["secret_id"], unique=False)
    op.create_table(
        "deployment_logs",
        sa.Column("id", types.Number, nullable=False),
        sa.Column("deployment_id", types.Number, nullable=False),
        sa.Column("at", types.Moment(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["deployment_id"], ["deployments.id"], name=op.f("fk_deployment_logs_deployment_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment_logs")),
    )
    op.create_index(
        op.f("ix_deployment_logs_deployment_id_id"),
        "deployment_logs",
        ["deployment_id", "id"],
        unique=False,
    )
