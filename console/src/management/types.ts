/** The answers of the management API that pages use: docs/reference/management-api.md. */

export interface Project {
  id: number;
  name: string;
  description: string;
  created_at: string;
  updated_at: string;
  paused_at: string | null;
  endpoint: string | null;
  tags: Record<string, string>;
  revision: number;
  repository: string | null;
  config: { manifest: string | null; replicas: number | null };
}
export interface Deployment {
  id: number;
  status: "queued" | "in_progress" | "succeeded" | "failed" | "created";
  created_at: string;
  finished_at: string | null;
  error_code: string | null;
  error_message: string | null;
  created_by: string;
  commit_sha: string | null;
  rollback_of: number | null;
}
export interface LogLine {
  timestamp: string;
  level: string;
  message: string;
}
export interface Secret {
  name: string;
  updated_at?: string;
}
export interface MonitorSpec {
  op: string;
  threshold: number;
  window: string;
  sustainSecs: number;
  severity: string;
  includeDetails: boolean;
  datasets?: string[];
}
export interface Targets {
  email?: { emails: string[]; recipientUserIds: number[] };
  slack?: { channelId: string };
  http?: {
    url: string;
    method?: string;
    token?: string;
    has_token?: boolean;
    disabled_reason?: string | null;
    signing_secret?: string;
  };
}
/** What monitors and reactions have in common. */
export interface Noticing {
  id: string;
  name: string;
  targets: Targets;
  enabled: boolean;
  state: string;
  since: string | null;
  evaluation_unavailable_reason: string | null;
  revision: number;
}
export interface Monitor extends Noticing {
  template: string;
  spec: MonitorSpec;
}
/** Each kind has some of the fields. */
export interface ReactionSpec {
  tasks?: string[];
  thresholdMs?: number;
  dataset?: string;
  where?: string;
  query?: string;
  minRows?: number;
  sustainSecs?: number;
  severity: string;
  includeDetails: boolean;
}
export interface Reaction extends Noticing {
  kind: string;
  spec: ReactionSpec;
}
export interface Activity {
  id: number;
  timestamp: string;
  actor: { name: string };
  action: string;
  resource: { kind: string; id: string; name: string };
  outcome: string;
  code: string | null;
  address: string;
}
export interface Member {
  user_id: number;
  username: string;
  roles: string[];
  is_owner: boolean;
  created_at: string;
}
export interface Invitation {
  id: number;
  email: string;
  roles: string[];
  invited_by: string | null;
  expires_at: string;
}
export interface Usage {
  plan: string;
  usage: Record<string, number>;
}
export interface Token {
  id: number;
  name: string;
  hint: string;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}
