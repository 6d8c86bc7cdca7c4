{{- define "abridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "abridge.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 55 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "abridge.selector" -}}
app.kubernetes.io/name: {{ include "abridge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "abridge.valkey.selector" -}}
app.kubernetes.io/name: valkey
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* What Prometheus's Service is found by, whatever the release is called. */}}
{{- define "abridge.metrics.selector" -}}
app.kubernetes.io/name: abridge
app.kubernetes.io/component: metrics
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of every object, besides its selector's. */}}
{{- define "abridge.labels" -}}
app.kubernetes.io/part-of: abridge
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "abridge.image" -}}
{{- $tag := printf ":%s" (default .Chart.AppVersion .Values.image.tag) }}
{{- .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}{{ $tag }}{{ end }}
{{- end }}

{{- define "abridge.settings" -}}
{{- toToml .Values.settings }}
{{- end }}

{{/* The variables that the Secret holds. */}}
{{- define "abridge.secret.keys" -}}
{{- $keys := .Values.secret.keys }}
{{- if .Values.valkey.enabled }}{{ $keys = append $keys "VALKEY_PASSWORD" }}{{ end }}
{{- toJson (uniq $keys) }}
{{- end }}

{{- define "abridge.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
