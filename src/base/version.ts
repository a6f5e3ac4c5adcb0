/** The version of the interface and of the program: one and the same. */
export const VERSION = '0.1.0'
