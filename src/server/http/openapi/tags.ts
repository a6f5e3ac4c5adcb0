/** Groups of operations in the order in which a reader needs them, each with the start of its routes. */
const groups = [
  ['Auth', '/api/auth', 'Guests, passkeys, codes, Google and Apple, sessions, and recovery.'],
  ['Agents', '/api/agents', 'Keys of agents with their scopes, policies, usage and decisions.'],
  ['Approvals', '/api/approvals', 'Spends that wait for the owner, and exceptions that an agent asks for.'],
  ['Activity', '/api/activity', 'Everything that moved in and out, newest first.'],
  ['Wallets', '/api/wallets', 'Balances, transfers, signers and allowances of the smart-account wallet.'],
  ['Wallets', '/api/transfers', ''],
  ['People', '/api/people', 'People of the account and their roles.'],
  ['Contacts', '/api/contacts', 'Names for payees.'],
  ['Requests', '/api/requests', 'Asking others for money, by a link that is paid in three ways.'],
  ['Purchases', '/api/purchases', 'Buying from any URL that is sold by x402 or MPP.'],
  ['Purchases', '/api/sellers', ''],
  ['Purchases', '/api/channels', ''],
  ['Recourse', '/api/recourse', 'Getting the money of a payment back, on every rail.'],
  ['Schedules', '/api/schedules', 'Payments that are made again and again.'],
  [
    'Statements',
    '/api/statements',
    'What an account had, what moved, and what it has then, for people and for bookkeeping.',
  ],
  ['Cards', '/api/cards', 'Virtual cards, their limits and their purchases.'],
  ['Banking', '/api/banking', 'Virtual bank accounts that receive money.'],
  ['Investing', '/api/investing', 'Fractional orders, holdings and dividends.'],
  ['Swaps', '/api/swaps', 'Quotes of the best route from one token to another.'],
  ['Compliance', '/api/compliance', 'Identity checks, blocked addresses, Travel Rule and personal data.'],
  ['Security', '/api/security', 'Second factors, passkeys, the emergency lock and the journal.'],
  ['API keys', '/api/developer', 'Keys of programs that act for their owner.'],
  [
    'Notifications',
    '/api/notifications',
    'How the owner is told of requests for approval, and by which channels.',
  ],
  ['Events', '/api/events', 'What happened, as a list and as a stream.'],
  ['Webhook endpoints', '/api/webhook-endpoints', 'URLs of yours that are told of events.'],
  ['FX quotes by x402', '/api/x402', 'Exchange rates, sold per request.'],
  ['Rails', '/api/rails', 'Which ways of paying are switched on.'],
  ['Sandbox', '/sandbox', 'Money, deposits and card purchases to play with. Not in production.'],
  ['Documentation', '/api/docs', 'Feedback on these pages.'],
  ['Operators', '/api/admin', 'For those who run this deployment.'],
  ['Webhooks', '/api/webhooks', 'Where banks, card processors and identity providers report.'],
] as const

/** Name of the group of a path. @throws Error if the path is in no group. */
export function findTag(path: string): string {
  const group = groups.find(([, start]) => path === start || path.startsWith(`${start}/`))
  if (group === undefined) throw new Error(`No group of operations holds ${path}: add one to tags.ts`)
  return group[0]
}

/** The tags of a document that has these paths. */
export function listTags(paths: readonly string[]): { name: string; description: string }[] {
  const used = new Set(paths.map(findTag))
  return groups
    .filter(([name, , description]) => used.has(name) && description !== '')
    .map(([name, , description]) => ({ name, description }))
}
