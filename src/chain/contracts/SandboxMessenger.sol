// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface ISandboxUsdc {
    function burn(uint256 value) external;
    function mint(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

interface ISandboxTransmitter {
    function localDomain() external view returns (uint32);
    function sendMessage(
        uint32 destinationDomain,
        bytes32 recipient,
        bytes32 destinationCaller,
        uint32 minFinalityThreshold,
        bytes calldata messageBody
    ) external;
}

/// @notice Stand-in for Circle's TokenMessengerV2 on local chains, with the work of its minter: it burns and mints USDC.
contract SandboxMessenger {
    ISandboxTransmitter private constant TRANSMITTER =
        ISandboxTransmitter(0xE737e5cEBEEBa77EFE34D4aa090756590b1CE275);
    /// @dev The last 20 bytes of keccak256 of `bursar sandbox bridge fees`.
    address public constant feeRecipient = 0xCB5CC6AC06B31E08fA1Cfc003D556EA965ed2487;
    uint32 public constant messageBodyVersion = 1;
    uint32 private constant CONFIRMED = 1000;
    uint32 private constant FINALIZED = 2000;
    uint256 private constant BODY = 228;

    event DepositForBurn(
        address indexed burnToken,
        uint256 amount,
        address indexed depositor,
        bytes32 mintRecipient,
        uint32 destinationDomain,
        bytes32 destinationTokenMessenger,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 indexed minFinalityThreshold,
        bytes hookData
    );
    event MintAndWithdraw(
        address indexed mintRecipient, uint256 amount, address indexed mintToken, uint256 feeCollected
    );

    /// @notice Circle's messenger on another chain: at the same address.
    function remoteTokenMessengers(uint32 domain) public view returns (bytes32) {
        return _usdcOf(domain) == address(0) ? bytes32(0) : bytes32(uint256(uint160(address(this))));
    }

    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external {
        require(amount > 0, "Amount must be nonzero");
        require(mintRecipient != bytes32(0), "Mint recipient must be nonzero");
        require(maxFee < amount, "Max fee must be less than amount");
        require(burnToken == _usdcOf(TRANSMITTER.localDomain()), "Burn token not supported");
        require(remoteTokenMessengers(destinationDomain) != bytes32(0), "No TokenMessenger for domain");
        uint32 finality = minFinalityThreshold <= CONFIRMED ? CONFIRMED : FINALIZED;
        ISandboxUsdc(burnToken).transferFrom(msg.sender, address(this), amount);
        ISandboxUsdc(burnToken).burn(amount);
        bytes memory body = _encodeBurn(burnToken, mintRecipient, amount, maxFee);
        TRANSMITTER.sendMessage(
            destinationDomain, remoteTokenMessengers(destinationDomain), destinationCaller, finality, body
        );
        _logBurn(destinationDomain, destinationCaller, finality, body);
    }

    function _logBurn(uint32 domain, bytes32 destinationCaller, uint32 finality, bytes memory body) private {
        (address token, bytes32 recipient, uint256 amount, uint256 maxFee) = this.readBurn(body);
        emit DepositForBurn(
            token,
            amount,
            msg.sender,
            recipient,
            domain,
            remoteTokenMessengers(domain),
            destinationCaller,
            maxFee,
            finality,
            ""
        );
    }

    function readBurn(bytes calldata body) external pure returns (address, bytes32, uint256, uint256) {
        return (
            address(uint160(uint256(bytes32(body[4:36])))),
            bytes32(body[36:68]),
            uint256(bytes32(body[68:100])),
            uint256(bytes32(body[132:164]))
        );
    }

    function _encodeBurn(address burnToken, bytes32 mintRecipient, uint256 amount, uint256 maxFee)
        private
        view
        returns (bytes memory)
    {
        return abi.encodePacked(
            messageBodyVersion,
            bytes32(uint256(uint160(burnToken))),
            mintRecipient,
            amount,
            bytes32(uint256(uint160(msg.sender))),
            maxFee,
            uint256(0),
            uint256(0)
        );
    }

    function handleReceiveFinalizedMessage(uint32 sourceDomain, bytes32 sender, uint32, bytes calldata messageBody)
        external
        returns (bool)
    {
        return _mint(sourceDomain, sender, messageBody);
    }

    function handleReceiveUnfinalizedMessage(
        uint32 sourceDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool) {
        require(finalityThresholdExecuted >= 500, "Unsupported finality threshold");
        return _mint(sourceDomain, sender, messageBody);
    }

    function _mint(uint32 sourceDomain, bytes32 sender, bytes calldata body) private returns (bool) {
        require(msg.sender == address(TRANSMITTER), "Invalid message transmitter");
        require(sender != bytes32(0) && sender == remoteTokenMessengers(sourceDomain), "Remote TokenMessenger unsupported");
        require(body.length >= BODY && uint32(bytes4(body[0:4])) == messageBodyVersion, "Invalid message body");
        require(address(uint160(uint256(bytes32(body[4:36])))) == _usdcOf(sourceDomain), "Mint token not supported");
        uint256 amount = uint256(bytes32(body[68:100]));
        uint256 fee = uint256(bytes32(body[164:196]));
        uint256 expiration = uint256(bytes32(body[196:228]));
        require(expiration == 0 || expiration > block.number, "Message expired and must be re-signed");
        require(fee == 0 || fee < amount, "Fee equals or exceeds amount");
        require(fee <= uint256(bytes32(body[132:164])), "Fee exceeds max fee");
        address recipient = address(uint160(uint256(bytes32(body[36:68]))));
        address token = _usdcOf(TRANSMITTER.localDomain());
        ISandboxUsdc(token).mint(recipient, amount - fee);
        if (fee > 0) ISandboxUsdc(token).mint(feeRecipient, fee);
        emit MintAndWithdraw(recipient, amount - fee, token, fee);
        return true;
    }

    /// @dev USDC of the two local chains.
    function _usdcOf(uint32 domain) private pure returns (address) {
        if (domain == 6) return 0x036CbD53842c5426634e7929541eC2318f3dCF7e;
        if (domain == 3) return 0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d;
        return address(0);
    }
}
