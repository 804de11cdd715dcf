{{/* Names, images and the cluster's spec: what the templates share. */}}

{{/* Whether this release has an operator, and whether any looks after its cluster. */}}
{{- define "caraway.installsOperator" -}}
{{- if and .Values.operator.enabled (not .Values.operator.external) }}true{{ end -}}
{{- end }}

{{- define "caraway.hasOperator" -}}
{{- if or .Values.operator.enabled .Values.operator.external }}true{{ end -}}
{{- end }}

{{/* Namespaces that the operator looks after, as JSON; none are all. A cluster of this release is among them. */}}
{{- define "caraway.operator.namespaces" -}}
{{- $found := .Values.operator.watchNamespaces -}}
{{- if and $found .Values.cluster.enabled }}{{ $found = append $found .Release.Namespace | uniq }}{{ end -}}
{{ toJson $found }}
{{- end }}

{{- define "caraway.operator.name" -}}
{{ printf "%s-operator" (.Release.Name | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "caraway.operator.account" -}}
{{- $account := .Values.operator.serviceAccount -}}
{{- if $account.create -}}
{{ default (include "caraway.operator.name" .) $account.name }}
{{- else -}}
{{ required "operator.serviceAccount.name is needed when operator.serviceAccount.create is false" $account.name }}
{{- end -}}
{{- end }}

{{/* The instance is not that of a cluster: policies and budgets of a cluster must not find the operator.
Those of a cluster let in who is called `caraway` and is the component `operator`. */}}
{{- define "caraway.operator.selector" -}}
app.kubernetes.io/name: caraway
app.kubernetes.io/instance: {{ include "caraway.operator.name" . }}
app.kubernetes.io/component: operator
{{- end }}

{{/* Labels of what belongs to the operator, or to the chart alone. */}}
{{- define "caraway.operator.labels" -}}
{{ include "caraway.operator.selector" . }}
app.kubernetes.io/part-of: caraway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "caraway.cluster.name" -}}
{{- $name := default .Release.Name .Values.cluster.name -}}
{{- if gt (len $name) 40 -}}
{{ fail (printf "the cluster's name '%s' has %d characters; at most 40 leave room for the names of its pods: set cluster.name" $name (len $name)) }}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{ fail (printf "the cluster's name '%s' cannot be the name of a Service; set cluster.name to lower-case letters, digits and '-', with a letter first" $name) }}
{{- end -}}
{{- $end := splitList "-" $name | last -}}
{{- if and (contains "-" $name) (has $end (list "ca" "clients" "executor" "head" "limits" "manifest" "metrics" "public" "scheduler" "state" "system" "tls" "token")) -}}
{{ fail (printf "the cluster's name '%s' is that of an object of another cluster; set cluster.name to one that does not end in '-%s'" $name $end) }}
{{- end -}}
{{ $name }}
{{- end }}

{{/* Labels of what the chart, not the operator, makes around the cluster. */}}
{{- define "caraway.labels" -}}
app.kubernetes.io/name: caraway
app.kubernetes.io/instance: {{ include "caraway.cluster.name" . }}
app.kubernetes.io/part-of: caraway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* A repository with the registry of all images before it. Takes (dict "root" $ "repository" ...). */}}
{{- define "caraway.repository" -}}
{{- $registry := .root.Values.global.imageRegistry | trimSuffix "/" -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .repository }}
{{- end }}

{{/* The image of the operator and of the test's pod. Takes (dict "root" $ "image" map). */}}
{{- define "caraway.image" -}}
{{- $image := .root.Values.image -}}
{{- $own := default dict .image -}}
{{- $repository := include "caraway.repository" (dict "root" .root "repository" (default $image.repository $own.repository)) -}}
{{- $digest := $own.digest -}}
{{- if not (or $own.repository $own.tag $own.digest) }}{{ $digest = $image.digest }}{{ end -}}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ coalesce $own.tag $image.tag .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "caraway.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What the CarawayCluster says, as YAML: the values without what is null, with images and a manifest. */}}
{{- define "caraway.spec" -}}
{{- $spec := include "caraway.withoutNulls" .Values.cluster.spec | fromYaml -}}
{{- $image := dict "repository" .Values.image.repository "pullPolicy" .Values.image.pullPolicy -}}
{{- if .Values.image.digest }}{{ $_ := set $image "digest" .Values.image.digest }}{{ end -}}
{{- $_ := set $image "tag" (default .Chart.AppVersion .Values.image.tag) -}}
{{- $own := default dict $spec.image -}}
{{- if and (or $own.repository $own.tag) (not $own.digest) }}{{ $_ := unset $image "digest" }}{{ end -}}
{{- $image = mergeOverwrite $image (deepCopy $own) -}}
{{- $_ := set $image "repository" (include "caraway.repository" (dict "root" $ "repository" $image.repository)) -}}
{{- with concat .Values.global.imagePullSecrets (default list $image.pullSecrets) | uniq }}{{ $_ := set $image "pullSecrets" . }}{{ end -}}
{{- $_ := set $spec "image" $image -}}
{{- range $part := list "head" "scheduler" "executor" "state" -}}
{{- $repository := dig $part "image" "repository" "" $spec -}}
{{- if $repository -}}
{{- $_ := set (index $spec $part "image") "repository" (include "caraway.repository" (dict "root" $ "repository" $repository)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.cluster.manifestFile -}}
{{- $manifest := fromYaml .Values.cluster.manifestFile -}}
{{- if hasKey $manifest "Error" }}{{ fail (printf "cluster.manifestFile is not YAML: %s" $manifest.Error) }}{{ end -}}
{{- $_ := set $spec "manifest" $manifest -}}
{{- else if not $spec.manifest -}}
{{- $_ := unset $spec "manifest" -}}
{{- if not $spec.manifestFrom -}}
{{- $_ := set $spec "manifest" (.Files.Get "files/manifest.yaml" | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- if and $spec.manifest $spec.manifestFrom }}{{ fail "cluster.spec.manifest and cluster.spec.manifestFrom exclude each other" }}{{ end -}}
{{ toYaml $spec }}
{{- end }}

{{/* A map without its keys that are null, at any depth. A manifest is left as it is. */}}
{{- define "caraway.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if and (kindIs "map" $value) (ne $key "manifest") -}}
{{- $_ := set $kept $key (include "caraway.withoutNulls" $value | fromYaml) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{ toYaml $kept }}
{{- end }}

{{/* Security of pods and containers: what the `restricted` standard asks for, and a read-only root. */}}
{{- define "caraway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "caraway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "caraway.hasTls" -}}
{{- if dig "tls" "enabled" false .Values.cluster.spec }}true{{ end -}}
{{- end }}
