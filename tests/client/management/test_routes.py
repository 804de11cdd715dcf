from tests.kit import management_methods
from tests.kit.management_methods import HOME


def test_methods_are_those_of_the_description_of_the_service() -> None:
    kept = {file.name: file.read_text() for file in HOME.glob("*.py")}

    assert kept == management_methods.modules(), "run: python -m tests.kit.management_methods"
