{{/* An Ingress to the port `http` of a Service. Takes (dict "root" $ "ingress" map "name" ... "labels" text). */}}
{{- define "caraway.ingress" -}}
{{- $name := .name -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- .labels | nindent 4 }}
    {{- with .ingress.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with .ingress.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .ingress.hosts }}
    - {{- with .host }}
      host: {{ . | quote }}
      {{- end }}
      http:
        paths:
          {{- range .paths }}
          - path: {{ .path }}
            pathType: {{ default "Prefix" .pathType }}
            backend:
              service:
                name: {{ $name }}
                port:
                  name: http
          {{- end }}
    {{- end }}
{{- end }}
