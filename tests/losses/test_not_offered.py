import pytest

from decidewise.losses import NOT_OFFERED, as_loss, registry


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_the_name_of_a_method_that_is_not_offered_says_why_and_what_to_use(name):
    assert name not in registry
    with pytest.raises(ValueError, match=rf"there is no loss '{name}': ") as raised:
        as_loss(name)
    assert any(f'"{other}"' in str(raised.value) for other in registry)
