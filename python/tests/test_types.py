"""The stubs declare what the package has, with the same parameters."""
import ast
import inspect
import os
import unittest

import kit
import libtarn

FOLDER = os.path.dirname(libtarn.__file__)


def declared(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def parameters_of(function):
    told = function.args
    names = [a.arg for a in (*told.posonlyargs, *told.args, *told.kwonlyargs)]
    for more in (told.vararg, told.kwarg):
        names += [more.arg] if more else []
    return names


def functions_of(node):
    return [f for f in node.body if isinstance(f, ast.FunctionDef)]


class Stubs(unittest.TestCase):
    def compare(self, function, real, where):
        if isinstance(real, property):
            return
        have = list(inspect.signature(real).parameters)
        self.assertEqual(parameters_of(function), have, where)

    def compare_class(self, node, real):
        for function in functions_of(node):
            if function.name in ("__exit__", "__getattr__"):
                continue
            where = f"{node.name}.{function.name}"
            self.compare(function, inspect.getattr_static(
                real, function.name), where)

    def compare_public(self, node, real):
        """What a class has without a declaration."""
        told = {f.name for f in functions_of(node)}
        told |= {a.target.id for a in node.body if isinstance(a, ast.AnnAssign)}
        for base in node.bases:
            told |= {"close"} if getattr(base, "id", "") == "_Closing" else \
                set()
        have = {name for name in vars(real) if not name.startswith("_")
                and name not in getattr(real, "__slots__", ())}
        self.assertEqual(have - told - {"agree"}, set(), node.name)

    def compare_module(self, tree, module):
        names = set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
                self.compare(node, getattr(module, node.name), node.name)
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                names.add(node.name)
                self.compare_class(node, getattr(module, node.name))
                self.compare_public(node, getattr(module, node.name))
        return names

    def test_the_package(self):
        names = self.compare_module(declared("__init__.pyi"), libtarn)
        self.assertEqual(names, set(libtarn.__all__))

    def test_torch(self):
        kit.module("torch")
        self.assertEqual(self.compare_module(declared("torch.pyi"),
                                             libtarn.torch),
                         {"Embedding", "snapshot_on_oom"})

    def test_marker(self):
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))


class Docstrings(unittest.TestCase):
    def test_all_have_one(self):
        for name in libtarn.__all__:
            found = getattr(libtarn, name)
            self.assertTrue(inspect.getdoc(found), name)
            if inspect.isclass(found):
                for member, value in vars(found).items():
                    if not member.startswith("_") and (
                            callable(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value),
                                        f"{name}.{member}")


if __name__ == "__main__":
    kit.main()
