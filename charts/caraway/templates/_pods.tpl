{{/* Parts of pods for the chart that is its own operator: what caraway_operator.manifests.{containers,pod,sizing,volumes} say. */}}

{{/* A quantity as a number. */}}
{{- define "caraway.number" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- $factors := dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- if not (hasKey $factors $unit) }}{{ fail (printf "'%s' is not a quantity; write for example 500m, 2 or 4Gi" $text) }}{{ end -}}
{{ mulf (float64 $number) (get $factors $unit) }}
{{- end }}

{{- define "caraway.mebibytes" -}}
{{ divf (include "caraway.number" . | float64) 1048576 | floor | int64 }}
{{- end }}

{{/* The resources of a container with defaults in place, as YAML. Takes (dict "kind" "resources"). */}}
{{- define "caraway.resources" -}}
{{- $defaults := dict "head" (list "100m" "768Mi") "scheduler" (list "500m" "1536Mi") "executor" (list "1" "2Gi") "state" (list "100m" "256Mi") "store" (list "100m" "256Mi") -}}
{{- $default := get $defaults .kind -}}
{{- $requests := deepCopy (default dict .resources.requests) -}}
{{- $limits := deepCopy (default dict .resources.limits) -}}
{{- $_ := set $limits "memory" (coalesce $limits.memory $requests.memory (index $default 1)) -}}
{{- $_ := set $requests "memory" (coalesce $requests.memory $limits.memory) -}}
{{- $_ := set $requests "cpu" (coalesce $requests.cpu $limits.cpu (index $default 0)) -}}
{{ toYaml (dict "requests" $requests "limits" $limits) }}
{{- end }}

{{/* How the memory of a container is shared out, in MiB. Takes (dict "kind" "resources"), as they are with defaults. */}}
{{- define "caraway.shares" -}}
{{- $limit := include "caraway.mebibytes" .resources.limits.memory | int64 -}}
{{- $percent := get (dict "head" 0 "scheduler" 10 "executor" 20) .kind -}}
{{- $shm := max 96 (div (mul $limit $percent) 100) -}}
{{- $rest := sub (sub (sub $limit $shm) 384) (div (mul $limit 5) 100) -}}
shm: {{ $shm }}
objects: {{ div (mul $shm 90) 100 }}
statements: {{ max 64 (div $rest 2) }}
{{- end }}

{{- define "caraway.cores" -}}
{{ max 1 (include "caraway.number" (coalesce .limits.cpu .requests.cpu) | float64 | ceil | int64) }}
{{- end }}

{{/* The image of a component. Takes (dict "spec" "pods"). */}}
{{- define "caraway.podImage" -}}
{{- $shared := .spec.image -}}{{- $own := .pods.image -}}
{{- $repository := default $shared.repository $own.repository -}}
{{- if or $own.digest (and (not $own.tag) $shared.digest (not $own.repository)) -}}
{{ $repository }}@{{ default $shared.digest $own.digest }}
{{- else -}}
{{ $repository }}:{{ default $shared.tag $own.tag }}
{{- end -}}
{{- end }}

{{/* A list, with another over it: what has the same key is replaced. Takes (dict "base" "more" "key"); YAML. */}}
{{- define "caraway.keyed" -}}
{{- $key := .key -}}{{- $over := dict -}}{{- $made := list -}}{{- $seen := dict -}}
{{- range .more }}{{ $_ := set $over (get . $key) . }}{{ end -}}
{{- range .base -}}
{{- $name := get . $key -}}{{- $_ := set $seen $name true -}}
{{- $made = append $made (ternary (get $over $name) . (hasKey $over $name)) -}}
{{- end -}}
{{- range .more -}}
{{- if not (hasKey $seen (get . $key)) }}{{ $_ := set $seen (get . $key) true }}{{ $made = append $made (get $over (get . $key)) }}{{ end -}}
{{- end -}}
{{ toYaml $made }}
{{- end }}

{{/* Merges a map over another, deeply and in place. Takes (dict "base" "over"). */}}
{{- define "caraway.merge" -}}
{{- $base := .base -}}
{{- range $key, $value := .over -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $base $key)) -}}
{{- $_ := include "caraway.merge" (dict "base" (get $base $key) "over" $value) -}}
{{- else -}}
{{- $_ := set $base $key $value -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The probes of a container. Takes (dict "over" "startup" "readiness" "liveness"), the last three handlers, and
"start": the delay, timeout and failures of the startup probe; YAML. */}}
{{- define "caraway.probes" -}}
{{- $probes := dict -}}
{{- $start := default (list 5 3 60) .start -}}
{{- range $name, $times := dict "startup" (list 5 (index $start 1) (index $start 2)) "readiness" (list 5 5 2) "liveness" (list 10 5 6) -}}
{{- $handler := get $ $name -}}
{{- $over := default dict (get $.over $name) -}}
{{- $isReplaced := false -}}
{{- range list "exec" "grpc" "httpGet" "tcpSocket" -}}
{{- if and (hasKey $over .) (not (hasKey $handler .)) }}{{ $isReplaced = true }}{{ end -}}
{{- end -}}
{{- $probe := ternary dict (deepCopy $handler) $isReplaced -}}
{{- if eq $name "startup" }}{{ $_ := set $probe "initialDelaySeconds" (index $start 0) }}{{ end -}}
{{- $_ := set $probe "periodSeconds" (index $times 0) -}}
{{- $_ := set $probe "timeoutSeconds" (index $times 1) -}}
{{- $_ := set $probe "failureThreshold" (index $times 2) -}}
{{- $_ := set $probe "successThreshold" 1 -}}
{{- $_ := include "caraway.merge" (dict "base" $probe "over" $over) -}}
{{- $_ := set $probes (printf "%sProbe" $name) $probe -}}
{{- end -}}
{{ toYaml $probes }}
{{- end }}

{{- define "caraway.http" -}}
{{ toYaml (dict "httpGet" (dict "path" .path "port" .port "scheme" "HTTP")) }}
{{- end }}

{{- define "caraway.tcp" -}}
{{ toYaml (dict "tcpSocket" (dict "port" .port)) }}
{{- end }}

{{/* A handler that fails once a file of the container is older; images of earlier releases do not make it. */}}
{{- define "caraway.fresh" -}}
{{- $script := printf "at=$(stat -c %%Y %s 2>/dev/null) || exit 0; [ $(($(date +%%s) - at)) -lt %d ]" .file (int .age) -}}
{{ toYaml (dict "exec" (dict "command" (list "sh" "-c" $script))) }}
{{- end }}

{{/* A container. Takes (dict "wanted" "pods" "name" "args" "env" "ports" "probes" "resources" "mounts"), and "command". */}}
{{- define "caraway.container" -}}
name: {{ .name }}
image: {{ include "caraway.podImage" (dict "spec" .wanted.spec "pods" .pods) | quote }}
imagePullPolicy: {{ .wanted.spec.image.pullPolicy }}
{{- with .command }}
command: {{ toJson . }}
{{- end }}
args: {{ toJson .args }}
env:
  {{- include "caraway.keyed" (dict "base" .env "more" .pods.env "key" "name") | nindent 2 }}
{{- with .pods.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- range .ports }}
  - name: {{ index . 0 }}
    containerPort: {{ index . 1 }}
    protocol: TCP
  {{- end }}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  privileged: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- include "caraway.keyed" (dict "base" .mounts "more" .pods.volumeMounts "key" "mountPath") | nindent 2 }}
{{ .probes }}
{{- end }}

{{/* Variables of every pod; YAML. */}}
{{- define "caraway.identity" -}}
- name: POD_NAME
  valueFrom:
    fieldRef: {apiVersion: v1, fieldPath: metadata.name}
- name: POD_IP
  valueFrom:
    fieldRef: {apiVersion: v1, fieldPath: status.podIP}
- name: HOME
  value: /var/lib/caraway
- name: TMPDIR
  value: /tmp
{{- end }}

{{- define "caraway.redisSecret" -}}
{{ default (printf "%s-state" .name) .spec.state.secretName }}
{{- end }}

{{/* Variables with the URL of the Redis; YAML. */}}
{{- define "caraway.stateVariables" -}}
{{- if .makesRedis -}}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "caraway.redisSecret" . }}
      key: password
- name: CARAWAY_STATE
  value: redis://:$(REDIS_PASSWORD)@{{ .name }}-state:6379
{{- else if .spec.redis.urlFrom -}}
- name: CARAWAY_STATE
  valueFrom:
    secretKeyRef:
      name: {{ .spec.redis.urlFrom.name }}
      key: {{ .spec.redis.urlFrom.key }}
{{- else -}}
- name: CARAWAY_STATE
  value: {{ .spec.redis.url | default "" | quote }}
{{- end -}}
{{- end }}

{{- define "caraway.commonFlags" -}}
{{ toJson (list "--token-file" "/etc/caraway/token/token" "--data-dir" "/var/lib/caraway" "--log-format" .spec.logFormat) }}
{{- end }}

{{- define "caraway.joiningFlags" -}}
{{ concat (list "--head" (printf "%s-head:6390" .name) "--node-ip" "$(POD_IP)" "--id" "$(POD_NAME)") (include "caraway.commonFlags" . | fromJsonArray) | toJson }}
{{- end }}

{{/* Volumes that processes of Ray have: the token, /tmp and /dev/shm; YAML. Takes (dict "wanted" "shm"). */}}
{{- define "caraway.rayVolumes" -}}
- name: token
  secret:
    secretName: {{ default (printf "%s-token" .wanted.name) .wanted.spec.token.secretName }}
    defaultMode: 288
    items:
      - {key: token, path: token}
- name: tmp
  emptyDir: {}
{{- with .shm }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ . }}Mi
{{- end }}
{{- end }}

{{- define "caraway.rayMounts" -}}
- {name: data, mountPath: /var/lib/caraway}
- {name: token, mountPath: /etc/caraway/token, readOnly: true}
- {name: tmp, mountPath: /tmp}
- {name: shm, mountPath: /dev/shm}
{{- end }}

{{/* The pods of a component. Takes (dict "wanted" "component" "pods" "containers" "volumes" "grace" "checksum"). */}}
{{- define "caraway.podTemplate" -}}
{{- $given := .wanted.spec.serviceAccount -}}
{{- $account := ternary (default (ternary .wanted.name "default" $given.create) $given.name) (printf "%s-system" .wanted.name) (has .component (list "scheduler" "executor")) -}}
{{- $annotations := deepCopy (default dict .pods.podAnnotations) -}}
{{- with .checksum }}{{ $_ := set $annotations "caraway.dev/manifest-checksum" . }}{{ end -}}
metadata:
  labels:
    {{- include "caraway.objectLabels" (dict "wanted" .wanted "component" .component "labels" .pods.podLabels) | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $account }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- include "caraway.podSecurity" . | nindent 4 }}
  terminationGracePeriodSeconds: {{ .grace | int64 }}
  {{- $selector := include "caraway.selector" . | fromYaml }}
  {{- $spread := list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway") }}
  {{- if kindIs "slice" .pods.topologySpreadConstraints }}{{ $spread = .pods.topologySpreadConstraints }}{{ end }}
  topologySpreadConstraints:
    {{- if not $spread }} []{{ end }}
    {{- range $spread }}
    - {{- if not (hasKey . "labelSelector") }}
      labelSelector:
        matchLabels:
          {{- toYaml $selector | nindent 10 }}
      {{- end }}
      {{- toYaml . | nindent 6 }}
    {{- end }}
  containers:
    {{- range .containers }}
    - {{ . | nindent 6 | trim }}
    {{- end }}
  volumes:
    {{- include "caraway.keyed" (dict "base" .volumes "more" .pods.volumes "key" "name") | nindent 4 }}
  {{- with .pods.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .pods.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .pods.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .pods.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .wanted.spec.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* A StatefulSet. Takes (dict "wanted" "component" "replicas" "template" "storage" "whenDeleted" "whenScaled"). */}}
{{- define "caraway.statefulSet" -}}
{{- $name := printf "%s-%s" .wanted.name .component -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "caraway.metadata" (dict "wanted" .wanted "component" .component "name" $name) | nindent 2 }}
spec:
  replicas: {{ .replicas | int64 }}
  serviceName: {{ $name }}
  selector:
    matchLabels:
      {{- include "caraway.selector" . | nindent 6 }}
  podManagementPolicy: Parallel
  revisionHistoryLimit: 3
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      partition: 0
  template:
    {{- .template | nindent 4 }}
  {{- if and .storage .storage.enabled }}
  volumeClaimTemplates:
    - metadata:
        name: data
        labels:
          {{- include "caraway.selector" . | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests:
            storage: {{ .storage.size }}
        volumeMode: Filesystem
        {{- with .storage.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ .whenDeleted }}
    whenScaled: {{ .whenScaled }}
  {{- end }}
{{- end }}
