from softswitch.compiler.expr import Access, Const, Element, Field, HeaderRef, Op, Unknown, Valid, parse, walk


def test_wrapped_expressions_are_unwrapped():
    plus = {
        "op": "+",
        "left": {"type": "field", "value": ["h", "f"]},
        "right": {"type": "hexstr", "value": "-0x2"},
    }
    once = {"type": "expression", "value": plus}
    assert parse(once) == parse({"type": "expression", "value": once}) == Op("+", Field("h", "f"), Const(-2))


def test_validity_is_a_field_of_a_fixed_or_computed_header():
    assert parse({"type": "field", "value": ["h", "$valid$"]}) == Valid(HeaderRef("h"))
    index = {"type": "hexstr", "value": "0x1"}
    element = {
        "op": "dereference_header_stack",
        "left": {"type": "header_stack", "value": "s"},
        "right": index,
    }
    assert parse({"type": "field", "value": [element, "$valid$"]}) == Valid(Element("s", Const(1)))
    access = {"op": "access_field", "left": {"type": "expression", "value": element}, "right": 2}
    assert parse({"type": "expression", "value": access}) == Access(Element("s", Const(1)), 2)


def test_unions_and_unknown_types_are_kept_for_refusal():
    sides = {side: {"type": "header_union", "value": side} for side in ("left", "right")}
    equal = parse({"type": "expression", "value": {"op": "==u", **sides}})
    assert equal == Unknown("operator ==u on header unions")
    assert parse({"type": "extern", "value": "x"}) == Unknown("operand of type extern")


def test_walk_visits_everything():
    expr = Op("?", Field("a", "x"), Access(Element("s", Field("b", "y")), 0), Valid(HeaderRef("c")))
    found = list(walk(expr))
    assert {Field("a", "x"), Field("b", "y"), HeaderRef("c"), Element("s", Field("b", "y"))} <= set(found)
