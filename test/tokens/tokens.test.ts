/** The list of tools fits in a model's head. `npm run tokens` prints the counts. */
import { describe, expect, it } from 'vitest'
import { isScope, scopes } from '../../policies/scopes.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { countTokens, listedCharacters } from './count-tokens.ts'

/** Characters of names, descriptions and input schemas: of all tools, and of a key that reads, transfers, buys and asks. The search for sellers takes 800 of both, recourse 1,500, channels 700, schedules 3,500, contacts 600, swaps 2,200, requests 2,200, payments and payouts from any chain 500. */
const MAX_CHARACTERS = { all: 49_150, buyer: 23_450 }
const buyer = ['wallets:read', 'wallets:transfer', 'purchases:pay', 'events:read'] as const
/** Output schemas, which many clients do not show to the model. The document that proves a purchase takes 1,200 of it, events 250, what is known of purchases, orders and entries 500, cards for one purchase and their numbers 800, records of sellers 500, purchases of what is used 150, recourse 1,900, channels 700, schedules 3,700, contacts 700, swaps 1,150, requests 2,300, payments and payouts from any chain 1,600. */
const MAX_ANSWERED = 38_900

const catalogue = buildCatalogue(tools, { mode: 'sandbox', guests: true })
const counted = countTokens(catalogue)

describe('the tokens of tools/list', () => {
  it('stay within their bounds', () => {
    const everything = Object.keys(scopes).filter(isScope)
    expect(listedCharacters(catalogue, everything)).toBeLessThanOrEqual(MAX_CHARACTERS.all)
    expect(listedCharacters(catalogue, buyer)).toBeLessThanOrEqual(MAX_CHARACTERS.buyer)
    expect(counted.reduce((total, { answered }) => total + answered, 0)).toBeLessThanOrEqual(MAX_ANSWERED)
  })

  it('are known for each tool, in steps of fifty', () => {
    const round = (count: number) => Math.ceil(count / 50) * 50
    const lines = counted
      .map(({ name, asked, answered }) => `${name}: ${round(asked)}, ${round(answered)}`)
      .sort()
    expect(lines).toMatchInlineSnapshot(`
      [
        "activity_list: 300, 750",
        "agents_decisions: 250, 700",
        "agents_delegate: 450, 600",
        "agents_delegations_list: 200, 600",
        "agents_delegations_revoke: 150, 100",
        "approvals_get: 150, 1200",
        "approvals_request: 300, 500",
        "approvals_withdraw: 150, 1200",
        "banking_create: 250, 750",
        "banking_list: 150, 800",
        "banking_payouts_create: 450, 800",
        "banking_payouts_get: 100, 550",
        "banking_payouts_list: 150, 600",
        "banking_payouts_quote: 250, 550",
        "banking_recipients_list: 150, 300",
        "cards_cancel: 100, 100",
        "cards_issue: 400, 1200",
        "cards_list: 150, 1250",
        "cards_settings: 350, 750",
        "cards_transactions: 150, 600",
        "cards_update: 400, 700",
        "channels_close: 150, 350",
        "channels_list: 100, 350",
        "compliance_kyc: 100, 250",
        "compliance_travel_rule: 500, 300",
        "compliance_travel_rules_get: 100, 150",
        "contacts_list: 100, 400",
        "context: 100, 1100",
        "events_list: 150, 300",
        "investing_order: 450, 500",
        "investing_orders_cancel: 100, 500",
        "investing_orders_list: 150, 500",
        "investing_portfolio: 200, 850",
        "policy_simulate: 450, 1150",
        "purchases_buy: 450, 950",
        "purchases_evidence: 100, 1250",
        "purchases_get: 150, 850",
        "purchases_list: 150, 650",
        "purchases_quote: 200, 750",
        "rails_list: 100, 700",
        "recourse_get: 100, 650",
        "recourse_list: 100, 450",
        "recourse_open: 250, 700",
        "requests_create: 300, 600",
        "requests_get: 100, 650",
        "requests_list: 100, 600",
        "requests_remove: 150, 600",
        "schedules_create: 550, 750",
        "schedules_get: 100, 750",
        "schedules_list: 150, 800",
        "schedules_remove: 100, 750",
        "schedules_update: 150, 750",
        "sellers_find: 200, 500",
        "swaps_execute: 500, 550",
        "swaps_orders_get: 100, 550",
        "swaps_quote: 300, 900",
        "transfers_gasless: 600, 450",
        "wallets_get: 100, 650",
        "wallets_transfer: 400, 700",
        "wallets_transfers_get: 150, 450",
        "wallets_transfers_list: 250, 550",
        "x402_fx: 250, 450",
        "x402_payments_get: 150, 150",
      ]
    `)
  })
})
