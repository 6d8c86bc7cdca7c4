{{/* vLLM, as an init container that goes on running: it starts first and ends last. */}}
{{- define "abridge.model" -}}
- name: vllm
  restartPolicy: Always
  image: {{ .Values.model.image }}
  command: [vllm, serve, {{ .Values.model.name | quote }}]
  args:
    # Loopback only: nobody reaches the model but through Abridge.
    - --host=127.0.0.1
    - --port=8000
    {{- toYaml .Values.model.args | nindent 4 }}
  env:
    # For models behind a licence; the Secret need not have it.
    - name: HF_TOKEN
      valueFrom:
        secretKeyRef: {name: {{ .Values.secret.name }}, key: HF_TOKEN, optional: true}
    - {name: HOME, value: /cache}
    - {name: USER, value: vllm}
    - {name: HF_HOME, value: /cache/huggingface}
    - {name: VLLM_NO_USAGE_STATS, value: "1"}
  startupProbe:
    {{- include "abridge.model.healthy" . | nindent 4 }}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 240
  readinessProbe:
    {{- include "abridge.model.healthy" . | nindent 4 }}
    periodSeconds: 10
    timeoutSeconds: 5
  livenessProbe:
    {{- include "abridge.model.healthy" . | nindent 4 }}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  resources:
    {{- toYaml .Values.model.resources | nindent 4 }}
  securityContext:
    {{- include "abridge.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: cache, mountPath: /cache}
    - {name: scratch, mountPath: /tmp}
    - {name: shared-memory, mountPath: /dev/shm}
{{- end }}

{{/* The kubelet cannot reach the pod's loopback, so a shell asks. */}}
{{- define "abridge.model.healthy" -}}
exec:
  command:
    - bash
    - -c
    - >-
      exec 3<>/dev/tcp/127.0.0.1/8000
      && printf 'GET /health HTTP/1.0\r\n\r\n' >&3
      && read -r -t 4 _ status _ <&3
      && [ "$status" = 200 ]
{{- end }}
