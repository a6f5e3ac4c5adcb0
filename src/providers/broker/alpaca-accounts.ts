/**
 * Accounts of persons at Alpaca, cash by journals (JNLC), and activities. A journal's `Idempotency-Key` is our id of the
 * transfer: Alpaca answers a repetition with the first result.
 */
import { z } from 'zod'
import { toAlpha3 } from '../../core/base/alpha-3.ts'
import { decimalOfUnits } from '../../core/money/money.ts'
import type {
  BrokerageAccount,
  BrokerageAccounts,
  BrokerageActivity,
  BrokerageApplication,
  BrokerageStatus,
  CashTransfer,
  CashTransferReport,
} from './accounts.ts'
import { type Answer, type Request, read, unavailable } from './alpaca-request.ts'
import {
  activity,
  brokerageAccount,
  journal,
  otherActivity,
  ownedAccount,
  position,
  tradingAccount,
} from './alpaca-shapes.ts'

/** Nano-dollars in a cent. */
const CENT = 10_000_000n
const PAGE_SIZE = 100
/** Maximum pages of activities, against endless pagination. */
const MAX_PAGES = 50
/** Tolerance between Alpaca's clock and ours. */
const CLOCK_SKEW_MS = 5 * 60_000

export function createAlpacaAccounts(
  request: Request,
  { base, firmAccountId }: { readonly base: string; readonly firmAccountId: string },
): BrokerageAccounts {
  const trading = (id: string) => `${base}/v1/trading/accounts/${encodeURIComponent(id)}`
  return {
    open: (application) => open(request, base, application),
    read: async (id) =>
      parseAccount(
        read(brokerageAccount, await request('GET', `${base}/v1/accounts/${encodeURIComponent(id)}`)),
      ),
    transfer: (transfer) => transferCash(request, { base, firmAccountId }, transfer),
    readTransfer: async (id) =>
      parseReport(read(journal, await request('GET', `${base}/v1/journals/${encodeURIComponent(id)}`))),
    withdrawableCash: async (id) => {
      const { cash_withdrawable: nanos } = read(
        tradingAccount,
        await request('GET', `${trading(id)}/account`),
      )
      return nanos > 0n ? nanos / CENT : 0n
    },
    positions: async (id) => {
      const rows = read(z.array(position), await request('GET', `${trading(id)}/positions`))
      return new Map(rows.map(({ symbol, qty }) => [symbol, qty]))
    },
    activities: (id, from) => loadActivities(request, base, { id, from }),
  }
}

const statuses: ReadonlyMap<string, BrokerageStatus> = new Map([
  ['ACTIVE', 'active'],
  ['ACTION_REQUIRED', 'action_required'],
  ['REJECTED', 'rejected'],
  ['SUBMISSION_FAILED', 'rejected'],
  ['DISABLED', 'closed'],
  ['ACCOUNT_CLOSED', 'closed'],
])

/** Every status that is not known to be final or active is pending. */
function parseAccount({ id, status }: z.output<typeof brokerageAccount>): BrokerageAccount {
  return { id, status: statuses.get(status) ?? 'pending' }
}

/**
 * An application has no key of its own at Alpaca: before it is sent, an account with the same person, not older than the
 * application, is looked for.
 */
async function open(
  request: Request,
  base: string,
  application: BrokerageApplication,
): Promise<BrokerageAccount | null> {
  const known = await findOpened(request, base, application)
  if (known !== undefined) return known
  const answer = await request('POST', `${base}/v1/accounts`, buildBody(application))
  if (answer.status === 200) return parseAccount(read(brokerageAccount, answer))
  // A concurrent attempt, or an account of another application with this address.
  if (answer.status === 409) return (await findOpened(request, base, application)) ?? null
  if (answer.status === 400 || answer.status === 422) return null
  throw unavailable(`answered ${answer.status} to an application`)
}

async function findOpened(
  request: Request,
  base: string,
  { email, firstName, lastName, dateOfBirth, firstSentAt }: BrokerageApplication,
): Promise<BrokerageAccount | undefined> {
  const query = new URLSearchParams({ query: email, entities: 'contact,identity' })
  const found = read(z.array(ownedAccount), await request('GET', `${base}/v1/accounts?${query}`))
  const since = Date.parse(firstSentAt) - CLOCK_SKEW_MS
  const own = found.find(
    ({ contact, identity, created_at: createdAt }) =>
      contact.email_address.toLowerCase() === email.toLowerCase() &&
      identity.given_name === firstName &&
      identity.family_name === lastName &&
      identity.date_of_birth === dateOfBirth &&
      createdAt.getTime() >= since,
  )
  return own === undefined ? undefined : parseAccount(own)
}

/** Agreements of a customer, in their current revision. */
const agreements = ['customer_agreement', 'account_agreement', 'margin_agreement'] as const

/** @see https://docs.alpaca.markets/reference/createaccount */
function buildBody(application: BrokerageApplication) {
  const { disclosures, state, postalCode } = application
  return {
    contact: {
      email_address: application.email,
      phone_number: application.phone,
      street_address: [application.street],
      city: application.city,
      ...(state === null ? {} : { state }),
      ...(postalCode === null ? {} : { postal_code: postalCode }),
      country: toAlpha3(application.country),
    },
    identity: {
      given_name: application.firstName,
      family_name: application.lastName,
      date_of_birth: application.dateOfBirth,
      tax_id: application.taxId,
      tax_id_type: application.taxIdType,
      country_of_tax_residence: toAlpha3(application.taxResidence),
      funding_source: application.fundingSources,
    },
    disclosures: {
      is_control_person: disclosures.isControlPerson,
      is_affiliated_exchange_or_finra: disclosures.isAffiliatedExchangeOrFinra,
      is_politically_exposed: disclosures.isPoliticallyExposed,
      immediate_family_exposed: disclosures.immediateFamilyExposed,
    },
    agreements: agreements.map((agreement) => ({
      agreement,
      signed_at: application.agreedAt,
      ip_address: application.agreedFrom,
    })),
  }
}

async function transferCash(
  request: Request,
  { base, firmAccountId }: { base: string; firmAccountId: string },
  { id, account, direction, cents }: CashTransfer,
): Promise<CashTransferReport> {
  const [from, to] = direction === 'to_person' ? [firmAccountId, account] : [account, firmAccountId]
  const amount = decimalOfUnits(cents, 2)
  const answer = await request(
    'POST',
    `${base}/v1/journals`,
    { entry_type: 'JNLC', from_account: from, to_account: to, amount, description: id },
    { 'idempotency-key': id },
  )
  if (answer.status === 200) return parseReport(journalBetween(answer, { from, to, cents }))
  // 400: invalid; 403: not enough cash; 404: no such account; 422: the id was used for something else.
  if ([400, 403, 404, 422].includes(answer.status)) return { id: null, status: 'refused' }
  throw unavailable(`answered ${answer.status} to a journal`)
}

/** Parses the journal that was asked for. @throws Failure `provider_unavailable` for any other. */
function journalBetween(
  answer: Answer,
  { from, to, cents }: { from: string; to: string; cents: bigint },
): z.output<typeof journal> {
  const moved = read(journal, answer)
  const isOurs = moved.from_account === from && moved.to_account === to && moved.net_amount === cents * CENT
  if (!isOurs) throw unavailable('answered with another journal')
  return moved
}

const endings: ReadonlyMap<string, CashTransferReport['status']> = new Map([
  ['executed', 'executed'],
  ['rejected', 'refused'],
  ['refused', 'refused'],
  ['canceled', 'refused'],
  ['deleted', 'refused'],
])

function parseReport({ id, status }: z.output<typeof journal>): CashTransferReport {
  return { id, status: endings.get(status) ?? 'pending' }
}

/** Trades, fees, interest and journals, which are known by other means or belong to the firm. */
const ownTypes = new Set(['FILL', 'JNLC', 'FEE', 'CFEE', 'INT'])

async function loadActivities(
  request: Request,
  base: string,
  { id, from }: { id: string; from: string },
): Promise<readonly BrokerageActivity[]> {
  const query = new URLSearchParams({
    account_id: id,
    // Exclusive.
    after: new Date(Date.parse(from) - 1).toISOString().slice(0, 10),
    direction: 'asc',
    page_size: String(PAGE_SIZE),
  })
  const found: BrokerageActivity[] = []
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await request('GET', `${base}/v1/accounts/activities?${query}`)
    const rows = read(z.array(z.unknown()), answer)
    const named = read(z.array(activity), answer)
    for (const [index, { activity_type: type, account_id: owner }] of named.entries()) {
      if (owner !== id) throw unavailable('answered with an activity of another account')
      if (!ownTypes.has(type)) found.push(...parseActivity(otherActivity.safeParse(rows[index])))
    }
    const last = named.at(-1)
    if (last === undefined || named.length < PAGE_SIZE) return found
    query.set('page_token', last.id)
  }
  throw unavailable('returned too many pages of activities')
}

function parseActivity(parsed: z.ZodSafeParseResult<z.output<typeof otherActivity>>): BrokerageActivity[] {
  if (!parsed.success) throw unavailable('answered with an unreadable activity')
  const { id, activity_type: type, date: day, net_amount: net, symbol, qty, status } = parsed.data
  if (status === 'canceled') return []
  const perShare = parsed.data.per_share_amount ?? null
  const kind = type.startsWith('DIV') ? 'dividend' : 'other'
  return [{ id, kind, type, symbol: symbol ?? null, day, net, qty: qty ?? null, perShare }]
}
