/** Introduction of the OpenAPI document: authentication and conventions shared by all operations. CommonMark. */

/** The commands in the text work as pasted, because they contain the deployment's origin. */
export function guide({ origin, mode }: { readonly origin: string; readonly mode: string }): string {
  const key = mode === 'sandbox' ? 'bsk_sandbox_…' : 'bsk_live_…'
  const demo =
    mode === 'sandbox'
      ? [
          '',
          `The sandbox has a demo key: \`curl -s ${origin}/sandbox/credentials\`. To create a guest with a funded wallet: \`curl -s -X POST ${origin}/api/auth/guest\`.`,
        ]
      : []
  return [
    'A money gateway for people and their agents: wallet, banking, cards, investing, swaps and compliance under a spend policy.',
    '',
    '## Authentication',
    '',
    'Send exactly one credential per request, never in the query string.',
    '',
    '**An API key or a session token**',
    '',
    '```sh',
    `curl -s ${origin}/api/wallets -H 'Authorization: Bearer ${key}'`,
    '```',
    ...demo,
    '',
    '**An agent** signs each request with its own Ed25519 key (RFC 9421, `tag="bursar"`). The command line signs for you:',
    '',
    '```sh',
    `npx bursar agent register --url ${origin} --name 'Invoice bot' --out agent.json    # its owner approves on a page`,
    `npx bursar agent call --key agent.json GET ${origin}/api/wallets`,
    '```',
    '',
    `**MCP**: \`claude mcp add --transport http bursar ${origin}/mcp\`. The client registers itself (OAuth 2.1), and the owner sets its permissions on a consent page. API keys and signatures are accepted too.`,
    '',
    '## Conventions',
    '',
    '- Amounts are decimal strings with a separate asset member; times are ISO 8601 UTC.',
    '- Every mutating route accepts `Idempotency-Key`: a repeated key and body is executed once and returns the first response.',
    `- Errors are \`application/problem+json\` (RFC 9457). \`type\` links to a page about the code; see [all error codes](${origin}/errors).`,
    '- Every response has `X-Request-Id`. `RateLimit` reports limits; an exceeded limit adds `Retry-After` in whole seconds.',
  ].join('\n')
}
