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

/* Whether an exception may come out of a frame without an entry for it: ``except*`` raises what is left over by
   RERAISE, which makes no entry, and a group made for it has none before. A transfer is the last entry of any
   other exception only where the call itself raised. */
static bool
leaves_no_entry(PyObject *error_or_type)
{
    return PyErr_GivenExceptionMatches(error_or_type, PyExc_BaseExceptionGroup);
}

/* The traceback without the entries of transfers, possibly NULL; unless ``whole`` the last entry stays. Takes and
   gives a reference. */
static PyObject *
without_transfers(PyObject *traceback, bool whole)
{
    PyTracebackObject *before = NULL;
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    int others = 0;
    while (entry != NULL && (whole || entry->tb_next != NULL) && others < MAX_OTHERS) {
        PyTracebackObject *next = entry->tb_next;
        if (!is_transfer(entry)) {
            others++;
            before = entry;
        }
        else if (before == NULL) {
            Py_XINCREF(next);
            Py_XSETREF(traceback, (PyObject *)next);
        }
        else {
            Py_XINCREF(next);
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
        PyObject *stripped = without_transfers(Py_NewRef(traceback), leaves_no_entry(error));
        if (stripped != traceback) {
            PyException_SetTraceback(error, stripped == NULL ? Py_None : stripped);
        }
        Py_XDECREF(stripped);
        Py_DECREF(traceback);
    }
    PyErr_SetRaisedException(error);
#else
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (traceback != NULL) {
        traceback = without_transfers(traceback, leaves_no_entry(type));
    }
    PyErr_Restore(type, error, traceback);
#endif
}
