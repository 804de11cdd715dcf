{{/* Names, labels and the container of the management service. */}}

{{- define "caraway.management.name" -}}
{{ printf "%s-management" (.Release.Name | trunc 52 | trimSuffix "-") }}
{{- end }}

{{- define "caraway.management.account" -}}
{{- $account := .Values.management.serviceAccount -}}
{{- if $account.create -}}
{{ default (include "caraway.management.name" .) $account.name }}
{{- else -}}
{{ required "management.serviceAccount.name is needed when management.serviceAccount.create is false" $account.name }}
{{- end -}}
{{- end }}

{{/* All its pods, those of the migration included. */}}
{{- define "caraway.management.members" -}}
app.kubernetes.io/name: caraway
app.kubernetes.io/instance: {{ include "caraway.management.name" . }}
{{- end }}

{{- define "caraway.management.selector" -}}
{{ include "caraway.management.members" . }}
app.kubernetes.io/component: management
{{- end }}

{{- define "caraway.management.labels" -}}
{{ include "caraway.management.selector" . }}
{{ include "caraway.management.release" . }}
{{- end }}

{{- define "caraway.management.release" -}}
app.kubernetes.io/part-of: caraway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Beginning of the names of projects' namespaces. */}}
{{- define "caraway.management.installation" -}}
{{- $name := default (printf "%s-%s" .Release.Namespace .Release.Name) .Values.management.installation -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" $name) -}}
{{ fail (printf "namespaces of projects cannot begin with '%s'; set management.installation to at most 40 lower-case letters, digits and '-', with a letter first" $name) }}
{{- end -}}
{{ $name }}
{{- end }}

{{/* Nothing, or an error: what the values must say for the service to work. */}}
{{- define "caraway.management.check" -}}
{{- if not (include "caraway.hasOperator" .) }}{{ fail "management.enabled needs an operator: set operator.enabled, or operator.external if another release has one" }}{{ end -}}
{{- if and (include "caraway.installsOperator" .) .Values.operator.watchNamespaces }}{{ fail "management.enabled needs an operator that watches all namespaces, because each project gets one: leave operator.watchNamespaces empty" }}{{ end -}}
{{- end }}

{{- define "caraway.management.databaseUrl" -}}
- name: CARAWAY_MANAGEMENT_DATABASE
  valueFrom:
    secretKeyRef:
      name: {{ required "management.database.secretName is needed: a Secret with the URL of a PostgreSQL database" .Values.management.database.secretName }}
      key: {{ .Values.management.database.key }}
{{- end }}

{{- define "caraway.management.placement" -}}
{{- with .Values.management.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.management.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.management.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.management.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
