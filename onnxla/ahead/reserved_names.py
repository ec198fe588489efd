"""Names that C or C++ reserves, and those that the headers of C and POSIX use.

A library of such a name would have a header that does not compile beside theirs, or symbols that replace a function of
the C library; `lib<name>` and `<name>.h` must not hide files of the system either.
"""

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case
    catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval
    constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
    false final float for friend goto if import inline int long module mutable namespace new noexcept not not_eq
    nullptr operator or or_eq override private protected public reflexpr register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch synchronized template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
    volatile wchar_t while xor xor_eq
    """.split()
)
"""Of C23 and C++23, those of a context among them."""

MACROS = frozenset(
    """
    AF_DECnet ATOMIC_BOOL_LOCK_FREE ATOMIC_CHAR16_T_LOCK_FREE ATOMIC_CHAR32_T_LOCK_FREE ATOMIC_CHAR_LOCK_FREE
    ATOMIC_FLAG_INIT ATOMIC_INT_LOCK_FREE ATOMIC_LLONG_LOCK_FREE ATOMIC_LONG_LOCK_FREE ATOMIC_POINTER_LOCK_FREE
    ATOMIC_SHORT_LOCK_FREE ATOMIC_VAR_INIT ATOMIC_WCHAR_T_LOCK_FREE BUFSIZ CHAR_BIT CHAR_MAX CHAR_MIN CLOCKS_PER_SEC
    CMPLX CMPLXF CMPLXL DBL_DECIMAL_DIG DBL_DIG DBL_EPSILON DBL_HAS_SUBNORM DBL_MANT_DIG DBL_MAX DBL_MAX_10_EXP
    DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP DBL_MIN_EXP DBL_TRUE_MIN DECIMAL_DIG E2BIG EACCES EADDRINUSE EADDRNOTAVAIL
    EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD
    ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST
    EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM
    EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN
    ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH
    ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET
    ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE
    ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO
    EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT
    ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK
    EXDEV EXFULL EXIT_FAILURE EXIT_SUCCESS FE_ALL_EXCEPT FE_DFL_ENV FE_DIVBYZERO FE_DOWNWARD FE_INEXACT FE_INVALID
    FE_OVERFLOW FE_TONEAREST FE_TOWARDZERO FE_UNDERFLOW FE_UPWARD FILENAME_MAX FLT_DECIMAL_DIG FLT_DIG FLT_EPSILON
    FLT_EVAL_METHOD FLT_HAS_SUBNORM FLT_MANT_DIG FLT_MAX FLT_MAX_10_EXP FLT_MAX_EXP FLT_MIN FLT_MIN_10_EXP
    FLT_MIN_EXP FLT_RADIX FLT_ROUNDS FLT_TRUE_MIN FOPEN_MAX FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL
    FP_SUBNORMAL FP_ZERO HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY INT16_C INT16_MAX INT16_MIN INT32_C INT32_MAX
    INT32_MIN INT64_C INT64_MAX INT64_MIN INT8_C INT8_MAX INT8_MIN INTMAX_C INTMAX_MAX INTMAX_MIN INTPTR_MAX
    INTPTR_MIN INT_FAST16_MAX INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX INT_FAST64_MIN
    INT_FAST8_MAX INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX
    INT_LEAST64_MIN INT_LEAST8_MAX INT_LEAST8_MIN INT_MAX INT_MIN LC_ADDRESS LC_ALL LC_COLLATE LC_CTYPE
    LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME
    LDBL_DECIMAL_DIG LDBL_DIG LDBL_EPSILON LDBL_HAS_SUBNORM LDBL_MANT_DIG LDBL_MAX LDBL_MAX_10_EXP LDBL_MAX_EXP
    LDBL_MIN LDBL_MIN_10_EXP LDBL_MIN_EXP LDBL_TRUE_MIN LLONG_MAX LLONG_MIN LONG_MAX LONG_MIN L_ctermid L_tmpnam
    MATH_ERREXCEPT MATH_ERRNO MB_CUR_MAX MB_LEN_MAX NAN NULL ONCE_FLAG_INIT PF_DECnet PRIX16 PRIX32 PRIX64 PRIX8
    PRIXFAST16 PRIXFAST32 PRIXFAST64 PRIXFAST8 PRIXLEAST16 PRIXLEAST32 PRIXLEAST64 PRIXLEAST8 PRIXMAX PRIXPTR PRId16
    PRId32 PRId64 PRId8 PRIdFAST16 PRIdFAST32 PRIdFAST64 PRIdFAST8 PRIdLEAST16 PRIdLEAST32 PRIdLEAST64 PRIdLEAST8
    PRIdMAX PRIdPTR PRIi16 PRIi32 PRIi64 PRIi8 PRIiFAST16 PRIiFAST32 PRIiFAST64 PRIiFAST8 PRIiLEAST16 PRIiLEAST32
    PRIiLEAST64 PRIiLEAST8 PRIiMAX PRIiPTR PRIo16 PRIo32 PRIo64 PRIo8 PRIoFAST16 PRIoFAST32 PRIoFAST64 PRIoFAST8
    PRIoLEAST16 PRIoLEAST32 PRIoLEAST64 PRIoLEAST8 PRIoMAX PRIoPTR PRIu16 PRIu32 PRIu64 PRIu8 PRIuFAST16 PRIuFAST32
    PRIuFAST64 PRIuFAST8 PRIuLEAST16 PRIuLEAST32 PRIuLEAST64 PRIuLEAST8 PRIuMAX PRIuPTR PRIx16 PRIx32 PRIx64 PRIx8
    PRIxFAST16 PRIxFAST32 PRIxFAST64 PRIxFAST8 PRIxLEAST16 PRIxLEAST32 PRIxLEAST64 PRIxLEAST8 PRIxMAX PRIxPTR
    PTRDIFF_MAX PTRDIFF_MIN P_tmpdir RAND_MAX SCHAR_MAX SCHAR_MIN SCNd16 SCNd32 SCNd64 SCNd8 SCNdFAST16 SCNdFAST32
    SCNdFAST64 SCNdFAST8 SCNdLEAST16 SCNdLEAST32 SCNdLEAST64 SCNdLEAST8 SCNdMAX SCNdPTR SCNi16 SCNi32 SCNi64 SCNi8
    SCNiFAST16 SCNiFAST32 SCNiFAST64 SCNiFAST8 SCNiLEAST16 SCNiLEAST32 SCNiLEAST64 SCNiLEAST8 SCNiMAX SCNiPTR SCNo16
    SCNo32 SCNo64 SCNo8 SCNoFAST16 SCNoFAST32 SCNoFAST64 SCNoFAST8 SCNoLEAST16 SCNoLEAST32 SCNoLEAST64 SCNoLEAST8
    SCNoMAX SCNoPTR SCNu16 SCNu32 SCNu64 SCNu8 SCNuFAST16 SCNuFAST32 SCNuFAST64 SCNuFAST8 SCNuLEAST16 SCNuLEAST32
    SCNuLEAST64 SCNuLEAST8 SCNuMAX SCNuPTR SCNx16 SCNx32 SCNx64 SCNx8 SCNxFAST16 SCNxFAST32 SCNxFAST64 SCNxFAST8
    SCNxLEAST16 SCNxLEAST32 SCNxLEAST64 SCNxLEAST8 SCNxMAX SCNxPTR SEEK_CUR SEEK_END SEEK_SET SHRT_MAX SHRT_MIN
    SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL
    SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN
    SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_DFL SIG_ERR
    SIG_IGN SIZE_MAX TIME_UTC TMP_MAX TSS_DTOR_ITERATIONS UCHAR_MAX UINT16_C UINT16_MAX UINT32_C UINT32_MAX UINT64_C
    UINT64_MAX UINT8_C UINT8_MAX UINTMAX_C UINTMAX_MAX UINTPTR_MAX UINT_FAST16_MAX UINT_FAST32_MAX UINT_FAST64_MAX
    UINT_FAST8_MAX UINT_LEAST16_MAX UINT_LEAST32_MAX UINT_LEAST64_MAX UINT_LEAST8_MAX UINT_MAX ULLONG_MAX ULONG_MAX
    USHRT_MAX WCHAR_MAX WCHAR_MIN WEOF WINT_MAX WINT_MIN acos acosh asin asinh assert atan atan2 atanh
    atomic_compare_exchange_strong atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak
    atomic_compare_exchange_weak_explicit atomic_exchange atomic_exchange_explicit atomic_fetch_add
    atomic_fetch_add_explicit atomic_fetch_and atomic_fetch_and_explicit atomic_fetch_or atomic_fetch_or_explicit
    atomic_fetch_sub atomic_fetch_sub_explicit atomic_fetch_xor atomic_fetch_xor_explicit atomic_flag_clear
    atomic_flag_clear_explicit atomic_flag_test_and_set atomic_flag_test_and_set_explicit atomic_init
    atomic_is_lock_free atomic_load atomic_load_explicit atomic_signal_fence atomic_store atomic_store_explicit
    atomic_thread_fence carg cbrt ceil cimag complex conj copysign cos cosh cproj creal d_fileno erf erfc errno exp
    exp2 expm1 fabs fdim floor fma fmax fmin fmod fpclassify frexp hypot ilogb isalnum isalnum_l isalpha isalpha_l
    isascii isblank isblank_l iscntrl iscntrl_l isdigit isdigit_l isfinite isgraph isgraph_l isgreater
    isgreaterequal isinf isless islessequal islessgreater islower islower_l isnan isnormal isprint isprint_l ispunct
    ispunct_l isspace isspace_l isunordered isupper isupper_l isxdigit isxdigit_l kill_dependency ldexp lgamma
    llrint llround log log10 log1p log2 logb lrint lround math_errhandling nearbyint nextafter nexttoward noreturn
    offsetof pow pthread_cleanup_pop pthread_cleanup_push remainder remquo rint round s6_addr sa_handler
    sa_sigaction scalbln scalbn sched_priority setjmp si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int
    si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper si_utime
    si_value sigev_notify_attributes sigev_notify_function signbit sigsetjmp sin sinh sqrt st_atime st_ctime
    st_mtime stderr stdin stdout tan tanh tgamma toascii trunc va_arg va_copy va_end va_start
    """.split()
)
"""Of C11's headers, and those of POSIX 2008 that look like other names."""

DECLARED = frozenset(
    """
    DIR FILE a64l abort abs accept access acosf acoshf acoshl acosl active_reg_t advance alarm aligned_alloc
    alphasort asctime asctime_r asinf asinhf asinhl asinl at_quick_exit atan2f atan2l atanf atanhf atanhl atanl
    atexit atof atoi atol atoll atomic_char16_t atomic_char32_t atomic_int_fast16_t atomic_int_fast32_t
    atomic_int_fast64_t atomic_int_fast8_t atomic_int_least16_t atomic_int_least32_t atomic_int_least64_t
    atomic_int_least8_t atomic_intmax_t atomic_intptr_t atomic_ptrdiff_t atomic_size_t atomic_uint_fast16_t
    atomic_uint_fast32_t atomic_uint_fast64_t atomic_uint_fast8_t atomic_uint_least16_t atomic_uint_least32_t
    atomic_uint_least64_t atomic_uint_least8_t atomic_uintmax_t atomic_uintptr_t atomic_wchar_t basename bcmp bcopy
    bind blkcnt_t blksize_t bsearch btowc bzero c16rtomb c32rtomb cabs cabsf cabsl cacos cacosf cacosh cacoshf
    cacoshl cacosl call_once calloc cargf cargl casin casinf casinh casinhf casinhl casinl catan catanf catanh
    catanhf catanhl catanl cbrtf cbrtl cc_t ccos ccosf ccosh ccoshf ccoshl ccosl ceilf ceill cexp cexpf cexpl
    cfgetispeed cfgetospeed cfsetispeed cfsetospeed chdir chmod chown cimagf cimagl clearerr clock
    clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clock_t clockid_t clog clogf clogl
    close closedir closelog cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_t cnd_timedwait cnd_wait confstr conjf
    conjl connect copysignf copysignl cosf coshf coshl cosl cpow cpowf cpowl cprojf cprojl cpu_set_t crealf creall
    creat csin csinf csinh csinhf csinhl csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl ctermid
    ctime ctime_r daylight dev_t difftime dirfd dirname div div_t dlclose dlerror dlopen dlsym double_t dprintf
    drand48 dup dup2 duplocale endhostent endnetent endprotoent endservent environ erand48 erfcf erfcl erff erfl err
    error errx execl execle execlp execv execve execvp exit exp2f exp2l expf expl expm1f expm1l fabsf fabsl
    faccessat fchdir fchmod fchmodat fchown fchownat fclose fcntl fdatasync fdimf fdiml fdopen fdopendir
    feclearexcept fegetenv fegetexceptflag fegetround feholdexcept fenv_t feof feraiseexcept ferror fesetenv
    fesetexceptflag fesetround fetestexcept feupdateenv fexcept_t fexecve fflush ffs fgetc fgetpos fgets fgetwc
    fgetws fileno float_t flockfile floorf floorl fmaf fmal fmaxf fmaxl fmemopen fminf fminl fmodf fmodl fopen fork
    fpathconf fpos_t fpregset_t fprintf fputc fputs fputwc fputws fread free freeaddrinfo freelocale freopen frexpf
    frexpl fsblkcnt_t fscanf fseek fseeko fsetpos fsfilcnt_t fstat fstatat fsync ftell ftello ftruncate ftrylockfile
    funlockfile futimens fwide fwprintf fwrite fwscanf gai_strerror gamma getaddrinfo getc getc_unlocked getchar
    getchar_unlocked getcwd getdate getdelim getegid getenv geteuid getgid getgrgid getgrnam getgroups gethostbyaddr
    gethostbyname gethostent gethostid gethostname getitimer getline getlogin getlogin_r getnameinfo getnetbyaddr
    getnetbyname getnetent getopt getpeername getpgid getpgrp getpid getppid getprotobyname getprotobynumber
    getprotoent getpwnam getpwuid gets getservbyname getservbyport getservent getsid getsockname getsockopt
    getsubopt gettimeofday getuid getwc getwchar gid_t glob glob_t globfree gmtime gmtime_r grantpt greg_t gregset_t
    hcreate hdestroy hsearch htonl htons hypotf hypotl iconv iconv_close iconv_open iconv_t id_t idtype_t ilogbf
    ilogbl imaxabs imaxdiv imaxdiv_t in_addr_t in_port_t index inet_addr inet_ntoa inet_ntop inet_pton initstate
    ino_t insque int16_t int32_t int64_t int8_t int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t
    int_least32_t int_least64_t int_least8_t intmax_t intptr_t ioctl isatty iswalnum iswalnum_l iswalpha iswalpha_l
    iswblank iswblank_l iswcntrl iswcntrl_l iswctype iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower
    iswlower_l iswprint iswprint_l iswpunct iswpunct_l iswspace iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l
    j0 j1 jmp_buf jn jrand48 key_t kill killpg l64a labs lchown lcong48 lconv ldexpf ldexpl ldiv ldiv_t lfind
    lgammaf lgammal link linkat listen llabs lldiv lldiv_t llrintf llrintl llroundf llroundl locale_t localeconv
    localtime localtime_r lockf log10f log10l log1pf log1pl log2f log2l logbf logbl logf logl longjmp lrand48 lrintf
    lrintl lroundf lroundl lsearch lseek lstat main malloc max_align_t mblen mbrlen mbrtoc16 mbrtoc32 mbrtowc
    mbsinit mbsnrtowcs mbsrtowcs mbstate_t mbstowcs mbtowc mcontext_t memccpy memchr memcmp memcpy memmove memset
    mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkstemp mktime mlock mlockall mmap mode_t modf modff modfl
    mprotect mrand48 msync mtx_destroy mtx_init mtx_lock mtx_t mtx_timedlock mtx_trylock mtx_unlock munlock
    munlockall munmap nan nanf nanl nanosleep nearbyintf nearbyintl newlocale nextafterf nextafterl nexttowardf
    nexttowardl nfds_t nice nlink_t nrand48 ntohl ntohs off_t open open_memstream open_wmemstream openat opendir
    openlog optarg opterr optind optopt pathconf pause pclose perror pid_t pipe poll popen posix_fadvise
    posix_fallocate posix_madvise posix_memalign posix_openpt posix_spawn posix_spawn_file_actions_addclose
    posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen posix_spawn_file_actions_destroy
    posix_spawn_file_actions_init posix_spawn_file_actions_t posix_spawnattr_destroy posix_spawnattr_getflags
    posix_spawnattr_getpgroup posix_spawnattr_getschedparam posix_spawnattr_getschedpolicy
    posix_spawnattr_getsigdefault posix_spawnattr_getsigmask posix_spawnattr_init posix_spawnattr_setflags
    posix_spawnattr_setpgroup posix_spawnattr_setschedparam posix_spawnattr_setschedpolicy
    posix_spawnattr_setsigdefault posix_spawnattr_setsigmask posix_spawnattr_t posix_spawnp powf powl pread printf
    pselect psiginfo psignal pthread_atfork pthread_attr_destroy pthread_attr_getdetachstate
    pthread_attr_getguardsize pthread_attr_getinheritsched pthread_attr_getschedparam pthread_attr_getschedpolicy
    pthread_attr_getscope pthread_attr_getstack pthread_attr_getstackaddr pthread_attr_getstacksize
    pthread_attr_init pthread_attr_setdetachstate pthread_attr_setguardsize pthread_attr_setinheritsched
    pthread_attr_setschedparam pthread_attr_setschedpolicy pthread_attr_setscope pthread_attr_setstack
    pthread_attr_setstackaddr pthread_attr_setstacksize pthread_attr_t pthread_barrier_destroy pthread_barrier_init
    pthread_barrier_t pthread_barrier_wait pthread_barrierattr_destroy pthread_barrierattr_getpshared
    pthread_barrierattr_init pthread_barrierattr_setpshared pthread_barrierattr_t pthread_cancel
    pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_t
    pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy pthread_condattr_getclock
    pthread_condattr_getpshared pthread_condattr_init pthread_condattr_setclock pthread_condattr_setpshared
    pthread_condattr_t pthread_create pthread_detach pthread_equal pthread_exit pthread_getconcurrency
    pthread_getcpuclockid pthread_getschedparam pthread_getspecific pthread_join pthread_key_create
    pthread_key_delete pthread_key_t pthread_kill pthread_mutex_consistent pthread_mutex_destroy
    pthread_mutex_getprioceiling pthread_mutex_init pthread_mutex_lock pthread_mutex_setprioceiling pthread_mutex_t
    pthread_mutex_timedlock pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_destroy
    pthread_mutexattr_getprioceiling pthread_mutexattr_getprotocol pthread_mutexattr_getpshared
    pthread_mutexattr_getrobust pthread_mutexattr_gettype pthread_mutexattr_init pthread_mutexattr_setprioceiling
    pthread_mutexattr_setprotocol pthread_mutexattr_setpshared pthread_mutexattr_setrobust pthread_mutexattr_settype
    pthread_mutexattr_t pthread_once pthread_once_t pthread_rwlock_destroy pthread_rwlock_init pthread_rwlock_rdlock
    pthread_rwlock_t pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_tryrdlock
    pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_rwlockattr_destroy
    pthread_rwlockattr_getkind_np pthread_rwlockattr_getpshared pthread_rwlockattr_init
    pthread_rwlockattr_setkind_np pthread_rwlockattr_setpshared pthread_rwlockattr_t pthread_self
    pthread_setcancelstate pthread_setcanceltype pthread_setconcurrency pthread_setschedparam pthread_setschedprio
    pthread_setspecific pthread_sigmask pthread_spin_destroy pthread_spin_init pthread_spin_lock
    pthread_spin_trylock pthread_spin_unlock pthread_spinlock_t pthread_t pthread_testcancel ptrdiff_t ptsname putc
    putc_unlocked putchar putchar_unlocked putenv puts putwc putwchar pwrite qsort quick_exit raise rand rand_r
    random re_dfa_t read readdir readdir_r readlink readlinkat readv realloc realpath recv recvfrom recvmsg
    reg_errcode_t reg_syntax_t regcomp regerror regex_t regexec regfree register_t regmatch_t regoff_t remainderf
    remainderl remove remque remquof remquol rename renameat rewind rewinddir rindex rintf rintl rmdir roundf roundl
    s_reg_t sa_family_t scalblnf scalblnl scalbnf scalbnl scandir scanf sched_get_priority_max
    sched_get_priority_min sched_getparam sched_getscheduler sched_rr_get_interval sched_setparam sched_setscheduler
    sched_yield seed48 seekdir select sem_close sem_destroy sem_getvalue sem_init sem_open sem_post sem_t
    sem_timedwait sem_trywait sem_unlink sem_wait send sendmsg sendto setbuf setegid setenv seteuid setgid
    sethostent setitimer setlocale setlogmask setnetent setpgid setpgrp setprotoent setregid setreuid setservent
    setsid setsockopt setstate setuid setvbuf shm_open shm_unlink shutdown sig_atomic_t sigaction sigaddset
    sigaltstack sigdelset sigemptyset sigevent_t sigfillset sighold sigignore siginfo_t siginterrupt sigismember
    siglongjmp signal signgam sigpause sigpending sigprocmask sigqueue sigrelse sigset sigset_t sigsuspend
    sigtimedwait sigwait sigwaitinfo sincos sinf sinhf sinhl sinl size_t sleep snprintf sockatmark socket socketpair
    socklen_t speed_t sprintf sqrtf sqrtl srand srand48 srandom sscanf ssize_t stack_t stat step stpcpy stpncpy
    strcasecmp strcasecmp_l strcat strchr strcmp strcoll strcoll_l strcpy strcspn strdup strerror strerror_l
    strerror_r strftime strftime_l strlen strncasecmp strncasecmp_l strncat strncmp strncpy strndup strnlen strpbrk
    strptime strrchr strsignal strspn strstr strtod strtof strtoimax strtok strtok_r strtol strtold strtoll strtoul
    strtoull strtoumax strxfrm strxfrm_l suseconds_t swab swprintf swscanf symlink symlinkat sync sysconf syslog
    system tanf tanhf tanhl tanl tcdrain tcflag_t tcflow tcflush tcgetattr tcgetpgrp tcgetsid tcsendbreak tcsetattr
    tcsetpgrp tdelete telldir tempnam tfind tgammaf tgammal thrd_create thrd_current thrd_detach thrd_equal
    thrd_exit thrd_join thrd_sleep thrd_start_t thrd_t thrd_yield time time_t timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timer_t times timespec_get timezone tm tmpfile tmpnam tolower
    tolower_l toupper toupper_l towctrans towctrans_l towlower towlower_l towupper towupper_l truncate truncf truncl
    tsearch tss_create tss_delete tss_dtor_t tss_get tss_set tss_t ttyname ttyname_r twalk tzname tzset u_int16_t
    u_int32_t u_int64_t u_int8_t ucontext_t uid_t uint16_t uint32_t uint64_t uint8_t uint_fast16_t uint_fast32_t
    uint_fast64_t uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t uintmax_t uintptr_t umask
    uname ungetc ungetwc unlink unlinkat unlockpt unsetenv useconds_t uselocale usleep utime utimensat utimes
    va_list vdprintf vfork vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf vswprintf
    vswscanf vwprintf vwscanf wait waitid waitpid warn warnx wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat
    wcschr wcscmp wcscoll wcscoll_l wcscpy wcscspn wcsdup wcsftime wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp
    wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold
    wcstoll wcstombs wcstoul wcstoull wcstoumax wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans wctrans_l
    wctrans_t wctype wctype_l wctype_t wcwidth wint_t wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf write writev
    wscanf y0 y1 yn
    """.split()
)
"""Functions and types of C11 and POSIX 2008, and what C libraries have had for long."""

HEADERS = frozenset(
    """
    aio assert complex cpio ctype dirent dlfcn elf endian errno fcntl features fenv float fmtmsg fnmatch ftw getopt glob
    grp iconv inttypes iso646 langinfo libgen limits link locale malloc math memory monetary mqueue ndbm netdb nl_types
    paths poll pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbit stdbool
    stdckdint stddef stdint stdio stdlib stdnoreturn string strings stropts syslog tar termios tgmath threads time uchar
    ulimit unistd utime utmpx wait wchar wctype wordexp
    """.split()
)
"""`<name>.h` of C and POSIX."""

LIBRARIES = frozenset(
    "anl asan atomic c crypt dl gcc gcc_s gomp m mvec nsl pthread quadmath resolv rt util xnet".split()
)
"""`lib<name>` of the C library, its parts, and a compiler's own."""
