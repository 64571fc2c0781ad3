"""Columns that identify persons or rows: by name, by value, and what only looks alike."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.tables.identifiers import identifier, words_of

SOME = np.random.default_rng(0).normal(size=40)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("customer_id", ["customer", "id"]),
        ("customerId", ["customer", "id"]),
        ("Customer ID", ["customer", "id"]),
        ("patientUUID", ["patient", "uuid"]),
        ("HTTPStatus", ["http", "status"]),
        ("e-mail", ["e", "mail"]),
    ],
)
def test_names_are_parted_into_words(name, words):
    assert words_of(name) == words


PERSONAL = "name first_name Email e-mail phone phone_number SSN home_address zip birthDate DOB postal_code"


@pytest.mark.parametrize(
    "name", ["customer_id", "ID", "caseUuid", "Zip Code", "date of birth", *PERSONAL.split()]
)
def test_names_that_say_it(name):
    found = identifier(name, pd.Series(SOME))
    assert found is not None
    assert found.unique
    assert identifier(name, pd.Series([0, 1] * 20)) is None


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.arange(40) + 7, "every row has another whole number, without gaps"),
        (100_000 + 37 * np.arange(40), "every row has another number of 6 digits"),
        (99_000 + 370 * np.arange(40), "every row has a larger whole number than the row before"),
        ([f"K{place}" for place in range(40)], "every row has another text"),
    ],
)
def test_values_that_differ_in_every_row(values, reason):
    found = identifier("x", pd.Series(values))
    assert (found.reason, found.unique, found.personal) == (reason, True, False)


@pytest.mark.parametrize(
    "values",
    [
        SOME,
        3 * np.arange(40),  # another whole number in each row, with gaps: a quantity
        9_990 + 7 * np.arange(40),  # of four and of five digits
        [f"K{place % 9}" for place in range(40)],
        np.random.default_rng(0).permutation(99_000 + 370 * np.arange(40)),  # in no order
        np.arange(10),
        [None] * 40,
        100_000.5 + np.arange(40),
    ],
)
def test_values_of_a_variable(values):
    assert identifier("x", pd.Series(values)) is None
