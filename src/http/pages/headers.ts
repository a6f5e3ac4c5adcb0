/** What a page may do: run and ask nothing but ours, and be framed by nobody. Its address may hold a provider's code. */
export const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
}

/** The same for the API's page, whose stylesheet has its icons in itself. */
export const apiPageHeaders = {
  ...pageHeaders,
  'Content-Security-Policy': `${pageHeaders['Content-Security-Policy']}; img-src data:`,
}
