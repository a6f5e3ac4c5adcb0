/** Version of both the API and the program. */
export const VERSION = '0.1.0'
