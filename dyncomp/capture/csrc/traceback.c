/* Tracebacks of exceptions that leave compiled code: every frame of the program is to be seen once. */
#include "hook.h"

/* an entry that is not a transfer is mostly the end of what this frame called directly */
#define MAX_OTHERS 32

static bool
is_transfer(PyTracebackObject *entry)
{
    int line, column, end_line, end_column;
    PyCodeObject *code = PyFrame_GetCode(entry->tb_frame);
    bool found = PyCode_Addr2Location(code, entry->tb_lasti, &line, &column, &end_line, &end_column)
        && column == TRANSFER_COLUMN && end_column == TRANSFER_COLUMN;
    Py_DECREF(code);
    return found;
}

/* The traceback without the entries of transfers; the last entry always stays. Takes and gives a reference. */
static PyObject *
without_transfers(PyObject *traceback)
{
    PyTracebackObject *before = NULL;
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    int others = 0;
    while (entry != NULL && entry->tb_next != NULL && others < MAX_OTHERS) {
        PyTracebackObject *next = entry->tb_next;
        if (!is_transfer(entry)) {
            others++;
            before = entry;
        }
        else if (before == NULL) {
            Py_INCREF(next);
            Py_SETREF(traceback, (PyObject *)next);
        }
        else {
            Py_INCREF(next);
            before->tb_next = next;
            Py_DECREF(entry);
        }
        entry = next;
    }
    return traceback;
}

void
strip_transfers(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *error = PyErr_GetRaisedException();
    PyObject *traceback = error == NULL ? NULL : PyException_GetTraceback(error);
    if (traceback != NULL) {
        PyObject *stripped = without_transfers(Py_NewRef(traceback));
        if (stripped != traceback) {
            PyException_SetTraceback(error, stripped);
        }
        Py_DECREF(stripped);
        Py_DECREF(traceback);
    }
    PyErr_SetRaisedException(error);
#else
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (traceback != NULL) {
        traceback = without_transfers(traceback);
    }
    PyErr_Restore(type, error, traceback);
#endif
}
