# FR_CHECK_CFLAGS(VARIABLE, FLAGS)
# Appends each of FLAGS that the compiler accepts to VARIABLE and substitutes it.
# -Werror makes clang refuse what it would only warn about.
AC_DEFUN([FR_CHECK_CFLAGS], [
	fr_save_CFLAGS=$CFLAGS
	for fr_flag in m4_normalize([$2]); do
		AC_MSG_CHECKING([whether $CC accepts $fr_flag])
		CFLAGS="$fr_save_CFLAGS -Werror $fr_flag"
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int fr_one;]])],
			[AC_MSG_RESULT([yes])
			 $1="$$1 $fr_flag"],
			[AC_MSG_RESULT([no])])
	done
	CFLAGS=$fr_save_CFLAGS
	AC_SUBST([$1])
])

# FR_CHECK_LDFLAG(FLAG, IF-YES, IF-NO)
AC_DEFUN([FR_CHECK_LDFLAG], [
	AC_MSG_CHECKING([whether the linker accepts $1])
	fr_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS $1"
	AC_LINK_IFELSE([AC_LANG_PROGRAM()],
		[AC_MSG_RESULT([yes])
		 $2],
		[AC_MSG_RESULT([no])
		 $3])
	LDFLAGS=$fr_save_LDFLAGS
])

# Conditional HAVE_VERSION_SCRIPT: a map file can limit what a library exports.
AC_DEFUN([FR_CHECK_VERSION_SCRIPT], [
	fr_vscript=no
	echo "{ global: main; local: *; };" >conftest.map
	FR_CHECK_LDFLAG([-Wl,--version-script=conftest.map], [fr_vscript=yes])
	rm -f conftest.map
	AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "$fr_vscript" = yes])
])

# NO_UNDEFINED_LDFLAGS: a shared object with an unresolved symbol does not link.
# Left out with sanitizers, whose symbols come from the program that loads it.
AC_DEFUN([FR_CHECK_NO_UNDEFINED], [
	AS_IF([test "$enable_asan$enable_tsan" = nono], [
		FR_CHECK_LDFLAG([-Wl,-z,defs],
			[NO_UNDEFINED_LDFLAGS="-Wl,-z,defs"])
	])
	AC_SUBST([NO_UNDEFINED_LDFLAGS])
])
