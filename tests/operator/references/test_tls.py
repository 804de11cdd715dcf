import datetime as dt

from cryptography import x509

from caraway_operator.references import tls

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = tls.names("shop", "web", ["shop.example.org", "10.1.2.3"])


def days(number: int) -> dt.datetime:
    return NOW + dt.timedelta(days=number)


def test_a_certificate_has_the_names_of_services_and_the_given_ones() -> None:
    made = tls.server(tls.authority("shop", NOW), "shop", NAMES, NOW)

    certificate = x509.load_pem_x509_certificate(made.certificate.encode())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"shop", "shop.web.svc", "shop.web.svc.cluster.local", "shop.example.org"} <= set(
        found.get_values_for_type(x509.DNSName)
    )
    assert {str(each) for each in found.get_values_for_type(x509.IPAddress)} == {
        "127.0.0.1",
        "10.1.2.3",
    }


def test_a_certificate_is_renewed_before_it_expires() -> None:
    ca = tls.authority("shop", NOW)
    made = tls.server(ca, "shop", NAMES, NOW)

    assert not tls.is_server_due(made.certificate, ca.certificate, NAMES, days(300))
    assert tls.is_server_due(made.certificate, ca.certificate, NAMES, days(306))
    assert not tls.is_authority_due(ca.certificate, days(3280))
    assert tls.is_authority_due(ca.certificate, days(3286))


def test_a_certificate_without_a_name_or_of_another_ca_is_renewed() -> None:
    ca = tls.authority("shop", NOW)
    made = tls.server(ca, "shop", NAMES, NOW)
    other = tls.authority("shop", NOW)

    assert tls.is_server_due(made.certificate, ca.certificate, (*NAMES, "new.example"), NOW)
    assert tls.is_server_due(made.certificate, other.certificate, NAMES, NOW)
    assert tls.is_server_due("nonsense", ca.certificate, NAMES, NOW)


def test_the_repr_contains_no_keys() -> None:
    assert "PRIVATE" not in repr(tls.authority("shop", NOW))
