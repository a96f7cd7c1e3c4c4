/* Class bits that the rules read, one byte for each tag; PUNCT is DeepSeek's, which has no case. */
#ifndef SAPHIRA_SHARED_CLASS_BITS_H
#define SAPHIRA_SHARED_CLASS_BITS_H

#define SA_BIT_LETTER 1
#define SA_BIT_NUMBER 2
#define SA_BIT_WHITE 4
#define SA_BIT_UPPER 8
#define SA_BIT_LOWER 16
#define SA_BIT_CASELESS 32
#define SA_BIT_MARK 64
#define SA_BIT_APART 128
#define SA_BIT_PUNCT SA_BIT_UPPER

#endif
