/** The list of tools fits in a model's head. `npm run tokens` prints the counts. */
import { describe, expect, it } from 'vitest'
import { catalogueOf } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { countTokens } from './count-tokens.ts'

/** Names, descriptions and input schemas of all tools. Four tools that buy from strangers took 900 of it, four for payouts 750. */
const MAX_ASKED = 10_700
/** Output schemas, which many clients do not show to the model. */
const MAX_ANSWERED = 20_400

const counted = countTokens(catalogueOf(tools, { mode: 'sandbox', guests: true }))

describe('the tokens of tools/list', () => {
  it('stay within their bounds at full scope', () => {
    expect(counted.reduce((total, { asked }) => total + asked, 0)).toBeLessThanOrEqual(MAX_ASKED)
    expect(counted.reduce((total, { answered }) => total + answered, 0)).toBeLessThanOrEqual(MAX_ANSWERED)
  })

  it('are known for each tool, in steps of fifty', () => {
    const rounded = (count: number) => Math.ceil(count / 50) * 50
    const lines = counted
      .map(({ name, asked, answered }) => `${name}: ${rounded(asked)}, ${rounded(answered)}`)
      .sort()
    expect(lines).toMatchInlineSnapshot(`
      [
        "activity_list: 350, 600",
        "agents_decisions: 200, 650",
        "approvals_get: 200, 650",
        "approvals_request: 300, 400",
        "approvals_withdraw: 200, 700",
        "banking_create: 400, 750",
        "banking_list: 200, 800",
        "banking_payouts_create: 450, 500",
        "banking_payouts_get: 100, 450",
        "banking_payouts_list: 150, 550",
        "banking_recipients_list: 150, 300",
        "cards_issue: 650, 700",
        "cards_list: 200, 900",
        "cards_settings: 550, 750",
        "cards_transactions: 200, 550",
        "cards_update: 700, 700",
        "compliance_kyc: 250, 250",
        "compliance_travel_rule: 750, 300",
        "compliance_travel_rules_get: 150, 150",
        "context: 100, 950",
        "investing_order: 550, 450",
        "investing_orders_cancel: 200, 450",
        "investing_orders_list: 200, 500",
        "investing_portfolio: 250, 850",
        "policy_simulate: 500, 850",
        "purchases_buy: 500, 600",
        "purchases_get: 150, 650",
        "purchases_list: 150, 500",
        "purchases_quote: 200, 500",
        "rails_list: 100, 650",
        "swaps_quote: 350, 900",
        "transfers_gasless: 850, 450",
        "wallets_get: 100, 550",
        "wallets_transfer: 450, 400",
        "wallets_transfers_get: 150, 400",
        "wallets_transfers_list: 300, 450",
        "x402_fx: 300, 450",
        "x402_payments_get: 150, 150",
      ]
    `)
  })
})
