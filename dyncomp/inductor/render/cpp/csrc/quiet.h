// Comparisons with NaN are no floating-point errors for NumPy. gcc takes those of `<` and its relatives that set the
// status flag (and -fno-trapping-math forbids it to care): macros of the assembler take the others, which cost the same.
// x86-64 with AVX has them all; of SSE's only comparisons of single numbers have another form.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define DC_QUIET(CODE, ALSO, NAME) \
  ".ifc \\imm,$" #CODE "\nvcmp" NAME "\\s \\rest\n.endif\n.ifc \\imm,$" #ALSO "\nvcmp" NAME "\\s \\rest\n.endif\n"
#define DC_QUIET_NAME(NAME, QUIET) ".macro vcmp" NAME "\\s rest:vararg\nvcmp" QUIET "\\s \\rest\n.endm\n"
asm(".irp s,ps,pd,ss,sd\n.macro vcmp\\s imm, rest:vararg\n"
    DC_QUIET(0, 16, "eq") DC_QUIET(1, 17, "lt_oq") DC_QUIET(2, 18, "le_oq") DC_QUIET(3, 19, "unord")
    DC_QUIET(4, 20, "neq") DC_QUIET(5, 21, "nlt_uq") DC_QUIET(6, 22, "nle_uq") DC_QUIET(7, 23, "ord")
    DC_QUIET(8, 24, "eq_uq") DC_QUIET(9, 25, "nge_uq") DC_QUIET(10, 26, "ngt_uq") DC_QUIET(11, 27, "false")
    DC_QUIET(12, 28, "neq_oq") DC_QUIET(13, 29, "ge_oq") DC_QUIET(14, 30, "gt_oq") DC_QUIET(15, 31, "true")
    ".endm\n"
    DC_QUIET_NAME("lt", "lt_oq") DC_QUIET_NAME("le", "le_oq") DC_QUIET_NAME("nlt", "nlt_uq")
    DC_QUIET_NAME("nle", "nle_uq") DC_QUIET_NAME("nge", "nge_uq") DC_QUIET_NAME("ngt", "ngt_uq")
    DC_QUIET_NAME("ge", "ge_oq") DC_QUIET_NAME("gt", "gt_oq")
    ".endr\n"
    ".irp s,ss,sd\n.macro vcomi\\s rest:vararg\nvucomi\\s \\rest\n.endm\n"
    ".macro comi\\s rest:vararg\nucomi\\s \\rest\n.endm\n.endr\n");
#endif
