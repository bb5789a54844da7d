"""Errors of addresses have the texts of Go's net/netip."""

import pytest

from roadstead.cel.network_errors import address_error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "unable to parse IP"),
        ("bad", "unable to parse IP"),
        ("1234", "unable to parse IP"),
        ("1.2.3.4%eth0", 'unexpected character (at "%eth0")'),
        (".1.2.3", 'IPv4 field must have at least one digit (at ".1.2.3")'),
        ("1.2.3.", 'IPv4 field must have at least one digit (at ".")'),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3", "IPv4 address too short"),
        ("0300.0250.0214.0377", "IPv4 field has octet with leading zero"),
        ("192.168.300.1", "IPv4 field has value >255"),
        ("::1%", "zone must be a non-empty string"),
        ("1:2", "address string too short"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3:4:5:6:7:8::", "the :: must expand to at least one field of zeros"),
        ("1:2:3:4::5:6:7:8", "the :: must expand to at least one field of zeros"),
        ("1:2:3:4:5:6::1.2.3.4", "the :: must expand to at least one field of zeros"),
        ("::1.2.3.256", "IPv4 field has value >255"),
    ],
)
def test_an_address_that_does_not_parse_has_gos_error(text, error):
    assert address_error(text) == f'ParseAddr("{text}"): {error}'
