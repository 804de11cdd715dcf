{{/* A cluster as it shall be, for the chart that is its own operator. The rules are those of
caraway_operator.manifests; a test renders both and compares. */}}

{{- define "caraway.isStandalone" -}}
{{- if and .Values.cluster.enabled (not (include "caraway.hasOperator" .)) }}true{{ end -}}
{{- end }}

{{/* Everything that the objects are made of, as YAML: name, spec with the CRD's defaults, manifest. */}}
{{- define "caraway.wanted" -}}
{{- $spec := include "caraway.spec" . | fromYaml -}}
{{- $crd := .Files.Get "crds/carawayclusters.caraway.dev.yaml" | fromYaml -}}
{{- $schema := index (index $crd.spec.versions 0).schema.openAPIV3Schema.properties "spec" -}}
{{- $_ := include "caraway.fill" (dict "schema" $schema "value" $spec) -}}
{{- if $spec.manifestFrom -}}
{{ fail "cluster.spec.manifestFrom needs the operator; use cluster.spec.manifest or cluster.manifestFile" }}
{{- end -}}
{{- if $spec.executor.maxReplicas }}{{ fail "cluster.spec.executor.maxReplicas needs the operator, which scales executors" }}{{ end -}}
{{- $content := $spec.manifest -}}
{{- $location := dig "runtime" "scheduler" "state_location" "" $content -}}
{{- if and $spec.resultStore $location }}{{ fail "cluster.spec.resultStore: the manifest has runtime.scheduler.state_location as well; keep one of them" }}{{ end -}}
{{- if and $spec.tls.enabled (dig "runtime" "tls" "" $content) }}{{ fail "cluster.spec.tls: the manifest has runtime.tls as well; keep one of them" }}{{ end -}}
{{- $wanted := dict
  "name" (include "caraway.cluster.name" .)
  "namespace" .Release.Namespace
  "manager" .Release.Service
  "spec" $spec
  "makesRedis" (not $spec.redis)
  "makesStore" (not (or $spec.resultStore $location))
  "version" (default (.Chart.AppVersion) (coalesce $spec.image.tag ($spec.image.digest | default "" | splitList ":" | last | trunc 12)))
-}}
{{- $_ := set $wanted "manifest" (include "caraway.manifest" (dict "wanted" $wanted) | fromJson) -}}
{{ toYaml $wanted }}
{{- end }}

{{/* Puts the defaults of a CRD's schema into a value, as the API server does. Takes (dict "schema" "value"). */}}
{{- define "caraway.fill" -}}
{{- $value := .value -}}
{{- range $key, $schema := .schema.properties -}}
{{- if and (hasKey $schema "default") (not (hasKey $value $key)) -}}
{{- $_ := set $value $key (ternary (deepCopy $schema.default) $schema.default (kindIs "map" $schema.default)) -}}
{{- end -}}
{{- $found := get $value $key -}}
{{- if and $schema.properties (kindIs "map" $found) (hasKey $value $key) -}}
{{- $_ := include "caraway.fill" (dict "schema" $schema "value" $found) -}}
{{- else if and (kindIs "slice" $found) $schema.items -}}
{{- range $found -}}
{{- if and (kindIs "map" .) $schema.items.properties -}}
{{- $_ := include "caraway.fill" (dict "schema" $schema.items "value" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The user's manifest, with keys, certificate, secrets and the place of answers, as JSON. */}}
{{- define "caraway.manifest" -}}
{{- $wanted := .wanted -}}
{{- $spec := $wanted.spec -}}
{{- $content := deepCopy $spec.manifest -}}
{{- $runtime := default dict $content.runtime -}}
{{- $stores := list -}}
{{- range $spec.secrets }}{{ $stores = append $stores (dict "from" (printf "file:/etc/caraway/secrets/%s" .name) "name" .name) }}{{ end -}}
{{- with $spec.auth.apiKeys -}}
{{- $auth := default dict $runtime.auth -}}
{{- $name := ternary "api_key" "api-key" (hasKey $auth "api_key") -}}
{{- $section := default dict (get $auth $name) -}}
{{- if eq (get $section "enabled" | toString) "false" }}{{ fail "cluster.spec.auth.apiKeys: the manifest switches API keys off; take 'enabled: false' out of it" }}{{ end -}}
{{- $keys := default list $section.keys -}}
{{- range $index, $key := . }}{{ $keys = append $keys (printf "${caraway_api_keys:%d}:%s" $index $key.access) }}{{ end -}}
{{- $_ := set $section "keys" $keys -}}
{{- $_ := set $auth $name $section -}}
{{- $_ := set $runtime "auth" $auth -}}
{{- $stores = append $stores (dict "from" "file:/etc/caraway/api-keys" "name" "caraway_api_keys") -}}
{{- end -}}
{{- if $spec.tls.enabled -}}
{{- $_ := set $runtime "tls" (dict "certificate_file" "/etc/caraway/tls/tls.crt" "key_file" "/etc/caraway/tls/tls.key") -}}
{{- end -}}
{{- if $spec.executor.flight.enabled -}}
{{- $flight := default dict $runtime.flight -}}
{{- if not (hasKey $flight "parallel_reads") }}{{ $_ := set $flight "parallel_reads" (dict "enabled" true) }}{{ end -}}
{{- $_ := set $runtime "flight" $flight -}}
{{- end -}}
{{- $scheduler := default dict $runtime.scheduler -}}
{{- if $wanted.makesStore -}}
{{- $_ := set $scheduler "state_location" (printf "caraway://%s-state:8095" $wanted.name) -}}
{{- else if $spec.resultStore -}}
{{- $_ := set $scheduler "state_location" $spec.resultStore.url -}}
{{- $params := deepCopy (default dict $spec.resultStore.params) -}}
{{- range $spec.resultStore.secretParams }}{{ $_ := set $params .param (printf "${caraway_result_store:%s}" .param) }}{{ end -}}
{{- if $params }}{{ $_ := set $scheduler "params" $params }}{{ end -}}
{{- if $spec.resultStore.secretParams }}{{ $stores = append $stores (dict "from" "file:/etc/caraway/result-store" "name" "caraway_result_store") }}{{ end -}}
{{- end -}}
{{- if $scheduler }}{{ $_ := set $runtime "scheduler" $scheduler }}{{ end -}}
{{- if $runtime }}{{ $_ := set $content "runtime" $runtime }}{{ end -}}
{{- if $stores -}}
{{- $known := ternary $content.secrets (list (dict "from" "env" "name" "env")) (kindIs "slice" $content.secrets) -}}
{{- $_ := set $content "secrets" (concat $known $stores) -}}
{{- end -}}
{{ toJson $content }}
{{- end }}

{{/* JSON, which is YAML too: no text in it can be taken for a number. */}}
{{- define "caraway.manifestText" -}}
# Written by Helm; change the chart's values instead.
{{ toPrettyJson .manifest }}
{{ end }}

{{- define "caraway.selector" -}}
app.kubernetes.io/name: caraway
app.kubernetes.io/instance: {{ .wanted.name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object. Takes (dict "wanted" "component" "labels"), of which the last two may lack. */}}
{{- define "caraway.objectLabels" -}}
{{- $labels := deepCopy (default dict .labels) -}}
{{- $_ := set $labels "app.kubernetes.io/name" "caraway" -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .wanted.name -}}
{{- with .component }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "caraway" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .wanted.manager -}}
{{- $_ := set $labels "app.kubernetes.io/version" (regexReplaceAll "[^A-Za-z0-9_.-]+" .wanted.version "-" | trunc 63 | trimAll "-_.") -}}
{{ toYaml $labels }}
{{- end }}

{{- define "caraway.metadata" -}}
name: {{ .name }}
namespace: {{ .wanted.namespace }}
labels:
  {{- include "caraway.objectLabels" . | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* How long the manifest lets statements under way take at the end, in whole seconds. */}}
{{- define "caraway.shutdownSeconds" -}}
{{- $written := dig "runtime" "shutdown_timeout" "30s" .spec.manifest | toString -}}
{{- $seconds := 0.0 -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 "" 1.0 -}}
{{- range regexFindAll "[0-9.]+[a-z]*" $written -1 -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $unit := trimPrefix $number . -}}
{{- if not (hasKey $units $unit) }}{{ fail (printf "runtime.shutdown_timeout: '%s' is not a duration; write for example 30s" $written) }}{{ end -}}
{{- $seconds = addf $seconds (mulf (float64 $number) (get $units $unit)) -}}
{{- end -}}
{{ $seconds | floor | int64 }}
{{- end }}
